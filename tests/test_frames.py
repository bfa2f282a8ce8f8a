"""Rules of frame names: the same on every machine, and whose code it is."""

from __future__ import annotations

import pytest

from crashpath.ingest.frames import java_frame, native_frame, native_function, node_frame, python_frame, python_module
from crashpath.ingest.model import Frame


@pytest.mark.parametrize(
    ("path", "module", "in_project"),
    [
        ("/opt/conda/lib/python3.10/site-packages/vllm/worker/worker.py", "vllm.worker.worker", False),
        ("/usr/local/lib/python3.12/dist-packages/torch/nn/modules/module.py", "torch.nn.modules.module", False),
        (r"C:\py\AppData\Roaming\Python\Python310\site-packages\torch\serialization.py", "torch.serialization", False),
        ("/srv/venv/lib/python3.9/site-packages/pkg-1.0-py3.9.egg/pkg/core.py", "pkg.core", False),
        ("/srv/venv/lib/python3.9/site-packages/requests/__init__.py", "requests", False),
        ("/usr/lib/python3.10/os.py", "os", False),
        (r"C:\Python310\lib\asyncio\base_events.py", "asyncio.base_events", False),
        ("/root/.pyenv/versions/3.11.7/lib/python3.11/multiprocessing/pool.py", "multiprocessing.pool", False),
        ("<frozen runpy>", "runpy", False),
        ("<frozen importlib._bootstrap>", "importlib._bootstrap", False),
        ("<stdin>", "<stdin>", True),
        ("<__array_function__ internals>", "<__array_function__ internals>", False),
        ("/tmp/ipykernel_412/99131.py", "<notebook>", True),
        ("/usr/local/bin/vllm", "vllm", False),
        (r"D:\svc\scan.py", "scan", True),
        ("/srv/app/models_server.py", "models_server", True),
        ("models_server.py", "models_server", True),
        ("/app/server/__main__.py", "server", True),
        ("/app/server/__init__.py", "server", True),
    ],
)
def test_a_python_module_has_no_install_path(path: str, module: str, in_project: bool) -> None:
    """A library file is named by its import path and is not the project's; a project file by its stem."""
    assert python_module(path) == (module, in_project)


def test_the_same_code_at_two_roots_is_the_same_frame() -> None:
    """Another user, root, Python version or operating system does not change a frame."""
    assert python_frame("/home/a/proj/pipe.py", "run") == python_frame(r"D:\work\pipe.py", "run")
    assert python_frame("/a/lib/python3.8/site-packages/x/y.py", "f") == python_frame(
        r"C:\v\Lib\site-packages\x\y.py", "f"
    )


def test_a_python_function_has_only_its_code_name() -> None:
    """IPython prints class and arguments, a plain traceback does not; both give one name."""
    plain = python_frame("/app/m.py", "__init__")
    assert python_frame("/app/m.py", "Session.__init__(self, path, **kwargs)") == plain
    assert python_frame("/app/m.py", "outer.<locals>.inner").function == "inner"
    assert python_frame("/app/m.py", "<lambda>").function == "<lambda>"


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("void ns::Engine::run<int>(int*, char const*)", "ns::Engine::run"),
        ("std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"),
        ("ns::A::operator()(int) const", "ns::A::operator()"),
        ("bool ns::operator< <int>(ns::A const&)", "ns::operator<"),
        ("operator new(unsigned long)", "operator new"),
        ("(anonymous namespace)::helper(int)", "helper"),
        ("kernel.isra.0", "kernel"),
        ("app::load::h0123456789abcdef", "app::load"),
        ("p::main::{{closure}}::h0123456789abcdef", "p::main::{lambda}"),
        ("run()::{lambda(int)#1}::operator()(int) const", "run::{lambda}::operator()"),
        ("PyEval_EvalFrameDefault+0x12ab", "PyEval_EvalFrameDefault"),
        ("free@plt", "free"),
        ("std::string::c_str[abi:cxx11]() const", "std::string::c_str"),
    ],
)
def test_a_native_function_has_no_types(signature: str, name: str) -> None:
    """Templates, parameters, return types, clones and hashes differ between builds and are dropped."""
    assert native_function(signature) == name


@pytest.mark.parametrize(
    ("function", "place", "in_project"),
    [
        ("ml::Engine::run(int)", "/build/ml/engine.cc", True),
        ("ml_run", "/opt/app/libengine.so.2", True),
        ("__GI_raise", "../sysdeps/unix/sysv/linux/raise.c", False),
        ("abort", "abort.c", False),
        ("pthread_kill@@GLIBC_2.34", "/lib/x86_64-linux-gnu/libc.so.6", False),
        ("std::terminate()", "", False),
        ("_PyEval_EvalFrameDefault", "/usr/bin/python3.10", False),
        ("at::native::add", "/v/lib/python3.10/site-packages/torch/lib/libtorch_cpu.so", False),
        ("core::panicking::panic_fmt", "/rustc/abc/library/core/src/panicking.rs", False),
        ("__interceptor_free", "asan_malloc_linux.cpp", False),
    ],
)
def test_native_machinery_is_not_the_project(function: str, place: str, in_project: bool) -> None:
    """What every crash of a language has on its stack says nothing of this one."""
    assert native_frame(function, place).in_project is in_project


@pytest.mark.parametrize(
    ("qualified", "frame"),
    [
        ("java.base/java.lang.Thread.run", Frame("run", "java.lang.Thread", False)),
        ("app//com.example.Loader.load", Frame("load", "com.example.Loader", True)),
        ("com.example.Main.lambda$main$0", Frame("lambda$main", "com.example.Main", True)),
        ("com.example.Main$$Lambda$14/0x0000000800066840.apply", Frame("apply", "com.example.Main$$Lambda", True)),
        ("com.example.Main$$Lambda/0x00007f1c.run", Frame("run", "com.example.Main$$Lambda", True)),
        ("jdk.reflect.GeneratedMethodAccessor12.invoke", Frame("invoke", "jdk.reflect.GeneratedMethodAccessor", False)),
        ("org.junit.Assert.fail", Frame("fail", "org.junit.Assert", False)),
        ("Boom.main", Frame("main", "Boom", True)),
    ],
)  # fmt: skip
def test_a_java_frame_has_no_made_up_numbers(qualified: str, frame: Frame) -> None:
    """Lambda classes, accessors and module prefixes differ from run to run and are dropped."""
    assert java_frame(qualified) == frame


@pytest.mark.parametrize(
    ("function", "place", "frame"),
    [
        ("deep", "/srv/a/app.js:2:23", Frame("deep", "app", True)),
        ("async Loader.load", "file:///srv/a/loader.mjs:9:1", Frame("Loader.load", "loader", True)),
        ("Module.load", "node:internal/modules/cjs:15:14", Frame("Module.load", "node:internal/modules/cjs", False)),
        ("run", "/srv/a/node_modules/ort-node/dist/backend.js:18:5", Frame("run", "ort-node/dist/backend", False)),
        ("", "C:\\srv\\app.js:1:1", Frame("<anonymous>", "app", True)),
    ],
)  # fmt: skip
def test_a_node_frame_has_no_install_path(function: str, place: str, frame: Frame) -> None:
    """Packages are named by their path under ``node_modules``, project files by their stem."""
    assert node_frame(function, place) == frame
