"""Frames that are the same on every machine: module names without install paths, and whose code they are.

A file of a library is named by its import path (``vllm.worker.worker``), whatever stands before ``site-packages``.
A file of the project is named by its stem alone (``models_server``; a package's ``__init__`` or ``__main__`` by
its folder): a traceback does not say where the project's root is, so any folder kept would make the same code
differ between two install roots.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

from crashpath.ingest.model import Frame

_STDLIB = sys.stdlib_module_names
_SITE = re.compile(r"(?:^|/)(?:site|dist)-packages/(?:[^/]+\.(?:egg|whl|zip)/)?")
_PYTHON_LIB = re.compile(r"/(?:lib(?:64)?/python\d[\d.]*t?|pypy\d[\d.]*|python\d+\.zip)/(?:lib-dynload/)?", re.I)
_WINDOWS_LIB = re.compile(r"^[a-z]:/(?:[^/]+/)*lib/", re.I)
_MIDDLE_FOLDER = re.compile(r"/_internal/")
_NOTEBOOK = re.compile(r"<ipython-input|ipykernel_\d+/|^(?:Cell |Input )?In ?\[")
_SCRIPT_FOLDER = re.compile(r"(?:^|/)(?:s?bin|Scripts)/[^/]+$")
_SUFFIX = re.compile(r"\.(?:pyc?|pyx|pyi|so|exe)$|\.cpython-[\w-]+\.so$")


@lru_cache(maxsize=65536)
def python_frame(path: str, function: str | None) -> Frame:
    """Name a Python frame from the file and function that a traceback prints.

    ``/opt/conda/lib/python3.10/site-packages/vllm/worker/worker.py`` gives ``vllm.worker.worker``, not in the
    project; ``D:\\svc\\scan.py`` gives ``scan``, in the project.
    """
    module, in_project = python_module(path)
    return Frame(python_function(function or ""), module, in_project)


@lru_cache(maxsize=16384)
def python_function(name: str) -> str:
    """Return the code name: without arguments, class and enclosing functions, which only some writers print."""
    name = name.strip() or "<module>"
    if name.startswith("<"):
        return name.split("(", 1)[0]
    return name.split("(", 1)[0].rsplit(".", 1)[-1] or name


@lru_cache(maxsize=65536)
def python_module(path: str) -> tuple[str, bool]:
    """Return the module of a Python file, and whether the project owns it."""
    if _NOTEBOOK.search(path):
        return "<notebook>", True
    if path.startswith("<"):
        return _inline_module(path)
    path = path.replace("\\", "/")
    if at := list(_SITE.finditer(path)):
        return _dotted(path[at[-1].end() :]), False
    if at := list(_PYTHON_LIB.finditer(path)):
        return _dotted(path[at[-1].end() :]), False
    if at := list(_WINDOWS_LIB.finditer(path)):
        rest = path[at[-1].end() :]
        if _dotted(rest).split(".", 1)[0] in _STDLIB:
            return _dotted(rest), False
    if path.startswith("torch/"):  # torch's own log lines print a path relative to its package
        return _dotted(path), False
    return _project_module(_MIDDLE_FOLDER.split(path)[-1])


def _inline_module(path: str) -> tuple[str, bool]:
    """Name what has no file: ``<frozen runpy>``, ``<string>``, ``<stdin>``, ``<__array_function__ internals>``."""
    inner = path.strip("<>")
    if inner.startswith("frozen "):
        name = inner.removeprefix("frozen ").strip()
        return name, name.split(".", 1)[0] not in _STDLIB and not name.startswith("importlib")
    return f"<{inner}>", inner in {"stdin", "string"}


def _project_module(path: str) -> tuple[str, bool]:
    parts = [part for part in path.split("/") if part]
    if not parts:
        return path, True
    stem = _SUFFIX.sub("", parts[-1])
    if stem in {"__init__", "__main__"} and len(parts) > 1:
        return parts[-2], True
    is_script = stem == parts[-1] and bool(_SCRIPT_FOLDER.search(path))
    return stem, not is_script


def _dotted(relative: str) -> str:
    name = _SUFFIX.sub("", relative).replace("/", ".")
    return name.removesuffix(".__init__").removesuffix(".__main__") or name


# --- native --------------------------------------------------------------------------------------------------------

_NATIVE_MACHINERY = re.compile(
    r"""^(?:
      _*(?:abort|raise|gsignal|kill|tgkill|pthread_kill\w*|assert\w*fail\w*|assert_perror_fail|assert_rtn|assert2)\b
    | __(?:GI_|libc_|interceptor_|asan|sanitizer|ubsan|msan|tsan|lsan|hwasan|cxa_|cxxabi|restore_rt|kernel_|fortify)
    | (?:__)?_?(?:start|libc_start\w*|start_thread|clone3?)$
    | _(?:Unwind_|dl_|PyEval_|PyObject_|PyFunction_|Py_|PyVectorcall)
    | Py[A-Z]\w*_
    | (?:std|__gnu_cxx|__cxxabiv\d|__sanitizer|__asan|__ubsan|__msan|__tsan|fuzzer|testing)::
    | (?:ggml_abort|ggml_print_backtrace|google::LogMessage|absl::.*log_internal|logging::LogMessage)
    | (?:core|std|alloc)::(?:panicking|panic|rt|result|option|sys_common|sys|ops::function|thread)\b
    | (?:rust_begin_unwind|rust_panic|__rust_)
    | (?:munmap_chunk|malloc_\w+|_int_\w+|cfree)$
    | (?:malloc|free|calloc|realloc|malloc_printerr|mem\w{3,4}|str\w{2,6}|operator\ (?:new|delete)(?:\[\])?)$
    | c10::(?:Error|detail::torch|ThrowEnforceNotMet)
    | \?\?$ | <unknown> | \(unknown\)
    )""",
    re.X,
)
_NATIVE_LIBRARY = re.compile(
    r"^(?:lib(?:c|m|dl|rt|pthread|stdc\+\+|gcc_s|c\+\+|c\+\+abi|python[\d.]*|torch\w*|c10\w*|onnxruntime\w*|cu[a-z]+\w*"
    r"|nv\w+|nccl\w*|tensorflow\w*|art|asan|ubsan|tsan|clang_rt[\w.-]*|utils|binder|hwui|gomp|iomp5|omp|mkl\w*)"
    r"|ld-linux\S*|ld|linux-vdso|\[vdso\]|kernel32|kernelbase|ntdll|ucrtbase|msvcp\w*|vcruntime\w*|user32"
    r"|app_process\w*|python\d*(?:\.\d+)?t?)$",
    re.I,
)
_SYSTEM_SOURCE = re.compile(
    r"/(?:usr/include|c\+\+/\d|c\+\+/v1|libstdc\+\+|sysdeps|nptl|csu|stdlib|rustc/|rustlib/|library/(?:std|core|alloc)/)"
)
_LIBRARY = re.compile(r"([^/\\!\s()]+?)(?:\.cpython-[\w-]+|\.abi\d)?\.(?:so|dll|dylib|exe)(?:\.[\d.]+)?$", re.I)
_ABI_TAG = re.compile(r"\[(?:clone|abi:)[^\]]*\]|::h[0-9a-f]{16}$|@+(?:plt|GLIBC\S*|entry)|\.llvm\.\d+$")
_CLONE = re.compile(r"(?:\.(?:isra|constprop|part|cold|lto_priv|localalias)(?:\.\d+)?)+$")
_OFFSET = re.compile(r"\s*\+\s*(?:0x[0-9a-fA-F]+|\d+)$")


@lru_cache(maxsize=65536)
def native_frame(function: str, place: str) -> Frame:
    """Name a native frame from a demangled function and the library or source file that it stands in.

    ``void ns::f<int>(int, char*)`` in ``/build/a/b.cc`` gives ``ns::f`` in ``b``.
    """
    name = native_function(function)
    library = _LIBRARY.search(place.strip())
    module = library.group(1) if library else source_stem(place)
    foreign = (
        not (name or module)
        or (name != "" and _NATIVE_MACHINERY.match(name) is not None)
        or ((library is not None or "/" not in place) and _NATIVE_LIBRARY.match(module) is not None)
        or _SYSTEM_SOURCE.search(place) is not None
    )
    return Frame(name or "??", module, not foreign)


@lru_cache(maxsize=65536)
def source_stem(place: str) -> str:
    """Return a source file's name without folder, suffix and line numbers."""
    stem = place.strip().replace("\\", "/").rsplit("/", 1)[-1]
    stem = re.sub(r"(?::\d+){1,2}$", "", stem)
    return stem.split(".", 1)[0] if not stem.startswith(("<", "[")) else stem


@lru_cache(maxsize=65536)
def native_function(signature: str) -> str:
    """Return a C, C++ or Rust function's qualified name without types: no return, template and parameter lists."""
    name = _ABI_TAG.sub("", _OFFSET.sub("", signature.strip()))
    name = name.replace("(anonymous namespace)::", "").replace("`anonymous namespace'::", "")
    name = re.sub(r"\{lambda\([^{}]*\)#\d+\}|<lambda_[0-9a-f]+>|\$_\d+|\{\{closure\}\}", "{lambda}", name)
    name = _without_brackets(name).strip()
    if " operator " in f" {name}":
        name = name[name.index("operator ") :] if name.startswith("operator ") else name.rsplit(" ", 1)[0]
    elif " " in name:
        name = re.sub(r"\s+(?:const|volatile|noexcept|&+)+$", "", name).rsplit(" ", 1)[-1]
    return _CLONE.sub("", _ABI_TAG.sub("", name.lstrip("*&"))).removesuffix("::")


def _without_brackets(name: str) -> str:
    """Drop what stands in ``<…>`` and ``(…)``, but not the operators that are written with these characters."""
    if name.startswith(("<", "[")) and not name.startswith("<impl") and "::" not in name:
        return name
    kept: list[str] = []
    depth = 0
    index = 0
    while index < len(name):
        if depth == 0 and name.startswith("operator", index):
            operator = re.compile(r"operator(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|[<>]=?|[^\w\s()<>]+)?").match(name, index)
            if operator is not None:
                kept.append(operator.group())
                index = operator.end()
                continue
        character = name[index]
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(character)
        index += 1
    return "".join(kept)


# --- Java and Node -------------------------------------------------------------------------------------------------

_JVM = re.compile(
    r"""^(?:java|javax|jdk|sun|com\.sun|junit|org\.junit|org\.testng|scala|kotlin|kotlinx|groovy|org\.codehaus\.groovy
    |org\.apache\.(?:maven|tools\.ant)|org\.gradle|worker\.org\.gradle|org\.opentest4j|org\.hamcrest|org\.mockito
    |android|androidx|dalvik|libcore|com\.android\.internal|com\.intellij\.rt|org\.eclipse\.jdt)\.""",
    re.X,
)
_MADE_CLASS = re.compile(
    r"(\$\$(?:Lambda|EnhancerBy[A-Za-z]+|FastClassBy[A-Za-z]+|SpringCGLIB))[\w$]*(?:[/@](?:0x)?[\da-f]+)*"
)
_JAVA_LOADER = re.compile(r"^(?:[\w.@-]*/)+(?=[A-Za-z_$])")  # ``app//``, ``java.base@17/``
_NUMBERED = re.compile(r"(Generated\w*Accessor|\$Proxy)\d+")
_NODE_INTERNAL = re.compile(
    r"^(?:node:|internal/|(?:timers|events|module|vm|fs|net|_stream\w*|domain)\.js$)|/node_modules/"
)


@lru_cache(maxsize=65536)
def java_frame(qualified: str) -> Frame:
    """Name a JVM frame: ``java.base/java.lang.Thread.run`` gives ``run`` in ``java.lang.Thread``."""
    owner, _, method = qualified.rpartition(".")
    owner = _NUMBERED.sub(r"\1", _MADE_CLASS.sub(r"\1", _JAVA_LOADER.sub("", owner)))
    method = re.sub(r"^(lambda\$\w*?)\$\d+$", r"\1", method)
    return Frame(method, owner, _JVM.match(owner + ".") is None)


@lru_cache(maxsize=65536)
def node_frame(function: str, place: str) -> Frame:
    """Name a JavaScript frame by its file's stem, or by package for what lies under ``node_modules``."""
    place = re.sub(r"^file://", "", place).replace("\\", "/")
    place = re.sub(r"(?::\d+){1,2}$", "", place)
    function = re.sub(r"^(?:async |new )+", "", function.strip()).split(" [as ", 1)[0] or "<anonymous>"
    internal = _NODE_INTERNAL.search(place) is not None
    if "/node_modules/" in place:
        module = place.rsplit("/node_modules/", 1)[1]
        module = re.sub(r"\.[cm]?[jt]sx?$", "", module)
    elif internal:
        module = re.sub(r"\.js$", "", place)
    else:
        module = re.sub(r"\.[cm]?[jt]sx?$", "", place.rsplit("/", 1)[-1])
    return Frame(function, module, not internal and place not in {"native", "<anonymous>"})
