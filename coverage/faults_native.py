"""Faults of native code: C++ programs, glibc's checks, the loader, sanitizers, a debugger's trace."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from crashpath.coverage.fault import Arena, Fault
from crashpath.coverage.native import build, run_script

_CORES = ("inference_core", "onnxruntime", "tensorflow_cc", "openblas")
GXX = ("linux", "g++")


def _engine(
    mode: str,
    *,
    path: str = "-",
    size: str = "3",
    before: str = "",
    source: str = "native_engine.cpp",
    as_nobody: bool = False,
    flags: tuple[str, ...] = ("-O0", "-rdynamic", "-pthread"),
) -> Callable[[Arena], None]:
    """Return a fault's ``run``: compile the engine and start it under bash, which tells how it ended."""

    def run(arena: Arena) -> None:
        program = build(arena, source, *flags)
        target = arena.path(path) if path.startswith("models/") else path
        if as_nobody:
            target = arena.root / path
        after = arena.rng.choice(
            (
                "exit $status",
                'echo "$(date -u +%FT%TZ) engine exited with code $status"\nexit $status',
                'echo "[entrypoint] child exited, status=$status" >&2\nexit $status',
                'echo "ERROR: inference backend terminated unexpectedly (exit code $status)"\nexit $status',
            )
        )
        trace = {"ENGINE_STACKTRACE": "1"} if arena.rng.random() < 0.35 else {}
        trace["ENGINE_STEP"] = mode
        body = f"{before}\n{program} {target} {size}\nstatus=$?\n{after}"
        if arena.variation.chatty:
            body = f'echo "loading {arena.variation.model} on $(nproc) threads"\n' + body
        run_script(arena, body, trace, as_nobody=as_nobody)

    return run


def _files(mode: str, path: str = "-", *, as_nobody: bool = False) -> Callable[[Arena], None]:
    return _engine(mode, path=path, source="native_files.cpp", as_nobody=as_nobody)


def _with_file(run: Callable[[Arena], None], name: str, data: bytes) -> Callable[[Arena], None]:
    def prepared(arena: Arena) -> None:
        arena.path(name).write_bytes(data)
        run(arena)

    return prepared


def _loader(kind: str) -> Callable[[Arena], None]:
    """A shared library that the loader refuses: absent, absent below it, undefined symbol, version, not a library."""

    def run(arena: Arena) -> None:
        name = arena.rng.choice(("custom_ops", "textproc", "preproc", "fused_attention", "rt_plugin"))
        library = arena.path(f"lib/lib{name}.so")
        below = arena.path(
            f"lib/lib{arena.rng.choice(('simdkit', 'onnx_rt_ext', 'blas_ilp', 'protolite'))}.so.{arena.variation.batch}"
        )
        source = arena.path("src/part.cpp")
        if kind == "below":
            _shared(arena, 'extern "C" int helper() { return 1; }', below, f"-Wl,-soname,{below.name}")
            _shared(arena, 'extern "C" int helper(); int user = helper();', library, str(below))
            below.unlink()
        elif kind == "symbol":
            _shared(
                arena,
                "namespace rt { struct Graph { void optimise(int); }; }\nvoid use() { rt::Graph().optimise(1); }",
                library,
            )
        elif kind == "version":
            versions = source.with_suffix(".map")
            versions.write_text(
                f"RT_{arena.variation.batch + 1}.{arena.variation.seed % 9} {{ global: helper; }};\n", encoding="ascii"
            )
            _shared(
                arena,
                'extern "C" int helper() { return 1; }',
                below,
                f"-Wl,-soname,{below.name}",
                f"-Wl,--version-script={versions}",
            )
            _shared(
                arena,
                'extern "C" int helper(); int user = helper();',
                library,
                str(below),
                f"-Wl,-rpath,{below.parent}",
            )
            versions.write_text("RT_1.0 { global: helper; };\n", encoding="ascii")
            _shared(
                arena,
                'extern "C" int helper() { return 1; }',
                below,
                f"-Wl,-soname,{below.name}",
                f"-Wl,--version-script={versions}",
            )
        elif kind == "cut":
            _shared(arena, "int value = 1;", library)
            library.write_bytes(library.read_bytes()[: arena.rng.choice((10, 200, 3000))])
        elif kind == "text":
            library.write_text("version https://git-lfs.github.com/spec/v1\n" * 40, encoding="ascii")
        program = build(arena, "native_engine.cpp", "-O0", "-rdynamic", "-pthread")
        run_script(arena, f"{program} {library} 0\nexit $?", {"ENGINE_STEP": "dlopen"})

    return run


def _shared(arena: Arena, source: str, target: object, *flags: str) -> None:
    code = arena.path("src/part.cpp")
    code.write_text(source + "\n", encoding="utf-8")
    subprocess.run(["g++", "-shared", "-fPIC", "-w", "-o", str(target), str(code), *flags], check=True)


def _linked(arena: Arena) -> None:
    """A program whose own library is gone: the loader ends it before ``main``."""
    library = arena.path(f"lib/lib{arena.rng.choice(_CORES)}.so.{arena.variation.batch}")
    _shared(arena, 'extern "C" int helper() { return 1; }', library, f"-Wl,-soname,{library.name}")
    program = build(arena, "native_engine.cpp", "-O0", "-pthread", "-Wl,--no-as-needed", str(library))
    library.unlink()
    run_script(arena, f'{program}\necho "server stopped: $?"')


def _sanitizer(mode: str, kind: str = "address") -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        program = build(arena, "native_sanitized.cpp", f"-fsanitize={kind}", "-fno-sanitize-recover=all", "-g", "-O0")
        run_script(
            arena,
            f"{program} {mode}\nexit $?",
            {"UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=0"},
        )

    return run


def _debugger(mode: str) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        program = build(arena, "native_engine.cpp", "-g", "-O0", "-pthread")
        run_script(
            arena,
            f"gdb -q -batch -nx -ex run -ex bt --args {program} - 3 2>&1 | grep -v -i debuginfod",
            {"ENGINE_STEP": mode},
        )

    return run


def _deadlock(arena: Arena) -> None:
    """Two threads wait for each other; a supervisor's deadline ends the program."""
    program = build(arena, "native_engine.cpp", "-O0", "-pthread")
    run_script(
        arena,
        f"timeout -v -s {arena.rng.choice(('KILL', 'ABRT', 'TERM'))} 2 {program}\nstatus=$?\n"
        f'echo "request watchdog: {program.name} stopped answering, killed (exit code $status)"\nexit $status',
    )


def _fault(
    name: str, failure: str, library: str, title: str, run: Callable[[Arena], None], phase: str = "infer", *needs: str
) -> Fault:
    return Fault(name, failure, phase, library, title, run, (*GXX, *needs))


NATIVE = "native_crash"
FAULTS = (
    _fault("cpp-null", NATIVE, "c++", "read through a null pointer", _engine("segv")),
    _fault("cpp-wild", NATIVE, "c++", "read through a wild pointer", _engine("wild", size="4096")),
    _fault("cpp-abort", NATIVE, "c++", "call abort", _engine("abort")),
    _fault("cpp-assert", NATIVE, "c++", "fail an assert", _engine("assert", size="9")),
    _fault("cpp-range", NATIVE, "c++", "leave a vector's range without a handler", _engine("range")),
    _fault("cpp-function", NATIVE, "c++", "call an empty std::function", _files("function")),
    _fault("cpp-length", NATIVE, "c++", "reserve more than a vector can have", _engine("length")),
    _fault("cpp-trap", NATIVE, "c++", "run an illegal instruction", _engine("ill")),
    _fault("cpp-divide", NATIVE, "c++", "divide by zero", _engine("fpe")),
    _fault("cpp-pure", NATIVE, "c++", "call a pure virtual method", _engine("pure")),
    _fault("cpp-recursion", NATIVE, "c++", "overflow the stack", _engine("overflow")),
    _fault(
        "cpp-mapped",
        NATIVE,
        "c++",
        "read a mapped file that was cut",
        _with_file(_engine("mmap", path="models/weights.bin", size="65536"), "models/weights.bin", bytes(65536)),
        "load",
    ),
    _fault("glibc-double-free", NATIVE, "glibc", "free a block twice", _engine("double_free")),
    _fault("glibc-free-invalid", NATIVE, "glibc", "free what malloc did not give", _engine("free_invalid")),
    _fault("glibc-heap", NATIVE, "glibc", "write past a heap block", _engine("heap")),
    _fault(
        "glibc-smash",
        NATIVE,
        "glibc",
        "write past a stack buffer",
        _engine("smash", path="encoder.layers.11.attention", flags=("-O0", "-fstack-protector-all", "-pthread")),
    ),
    _fault(
        "cpp-bad-alloc",
        "oom_host",
        "c++",
        "allocate past the address-space limit",
        _engine("alloc", size="4000000", before="ulimit -v 400000"),
        "load",
    ),
    _fault(
        "cpp-open-missing",
        "load_corrupt",
        "c++",
        "open a model folder that is not there",
        _files("open", path="models/current"),
        "load",
    ),
    _fault(
        "cpp-size-missing",
        "load_corrupt",
        "c++",
        "ask the size of weights that are not there",
        _files("filesize", path="models/weights.bin"),
        "load",
    ),
    _fault(
        "cpp-mkdir-readonly",
        "permission_disk",
        "c++",
        "make a cache folder as a user who may not",
        _files("mkdir", path="models/cache/blobs", as_nobody=True),
        "load",
    ),
    _fault("cpp-deadlock", "hang", "c++", "two threads that wait for each other", _deadlock, "infer", "timeout"),
    _fault("loader-absent", "dependency", "ld.so", "dlopen a library that is not there", _loader("absent"), "load"),
    _fault(
        "loader-below",
        "dependency",
        "ld.so",
        "dlopen a library whose own library is not there",
        _loader("below"),
        "load",
    ),
    _fault(
        "loader-symbol", "dependency", "ld.so", "dlopen a library with an undefined symbol", _loader("symbol"), "load"
    ),
    _fault(
        "loader-version",
        "dependency",
        "ld.so",
        "dlopen a library of another symbol version",
        _loader("version"),
        "load",
    ),
    _fault("loader-cut", "dependency", "ld.so", "dlopen a library that was cut off", _loader("cut"), "load"),
    _fault("loader-text", "dependency", "ld.so", "dlopen a pointer file", _loader("text"), "load"),
    _fault("loader-linked", "dependency", "ld.so", "start a program whose library is gone", _linked, "load"),
    _fault("asan-heap", NATIVE, "sanitizer", "read past a heap block", _sanitizer("heap-overflow")),
    _fault("asan-freed", NATIVE, "sanitizer", "read a freed block", _sanitizer("use-after-free")),
    _fault("asan-twice", NATIVE, "sanitizer", "free a block twice", _sanitizer("double-free")),
    _fault("asan-stack", NATIVE, "sanitizer", "read past a stack buffer", _sanitizer("stack-overflow")),
    _fault("asan-null", NATIVE, "sanitizer", "read through a null pointer", _sanitizer("null")),
    _fault("ubsan-shift", NATIVE, "sanitizer", "shift too far", _sanitizer("shift", "undefined")),
    _fault("ubsan-signed", NATIVE, "sanitizer", "overflow a signed integer", _sanitizer("signed", "undefined")),
    _fault("gdb-null", NATIVE, "gdb", "a debugger's trace of a null pointer", _debugger("segv"), "infer", "gdb"),
    _fault("gdb-abort", NATIVE, "gdb", "a debugger's trace of an abort", _debugger("range"), "infer", "gdb"),
)
