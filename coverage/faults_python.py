"""Faults of Python's imports: packages absent, of another version, of another ABI."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import compile_shared
from crashpath.coverage.fault import Arena, Fault

_ABSENT = (
    "flash_attn",
    "xformers",
    "bitsandbytes",
    "auto_gptq",
    "faiss",
    "detectron2",
    "sacremoses",
    "paddle",
    "mlserver",
    "deepspeed",
    "cv2",
    "soundfile",
)
_PACKAGES = ("featurelib", "rankops", "audiokit", "textprep", "visionpost")


def _package(arena: Arena, name: str, source: str, version: str | None = None) -> Path:
    """Write a package beside the app's own, with metadata where ``version`` is given, and return its folder."""
    folder = arena.path(f"{name}/__init__.py").parent
    (folder / "__init__.py").write_text(source, encoding="utf-8")
    if version is not None:
        metadata = arena.path(f"{name}-{version}.dist-info/METADATA")
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    return folder


def _module_missing(arena: Arena) -> None:
    name = arena.rng.choice(_ABSENT)
    late = arena.rng.random() < 0.5
    line = arena.rng.choice((f"import {name}", f"from {name} import ops"))
    arena.serve(Code.of(f"{line}\nreturn ops" if late else "return None", "" if late else line))


def _name_missing(arena: Arena) -> None:
    line = arena.rng.choice(
        (
            "from numpy import float_, product",
            "from numpy.core.umath_tests import inner1d",
            "from onnx import mapping",
            "from tokenizers.implementations import UnigramTokenizer",
            "from jinja2 import contextfilter",
            "from collections import Mapping",
            "from huggingface_hub import cached_download",
            "from packaging.version import LegacyVersion",
            "from sqlalchemy.ext.declarative.api import DeclarativeMeta",
        )
    )
    arena.serve(Code.of("return None", line))


def _attribute_missing(arena: Arena) -> None:
    body, imports = arena.rng.choice(
        (
            ("return np.zeros(width, dtype=np.float)", "import numpy as np"),
            ("return np.array([1, 0], dtype=np.bool8)", "import numpy as np"),
            ("return np.in1d([width], [1, 2])", "import numpy as np"),
            ("return np.product([width, 2])", "import numpy as np"),
            ("return onnx.optimizer.optimize(onnx.ModelProto())", "import onnx"),
            ("return inspect.getargspec(len)", "import inspect"),
        )
    )
    arena.serve(Code.of(body, imports, width=arena.variation.width))


def _version_conflict(arena: Arena) -> None:
    """A package of the app that asks, when it is imported, for a version of another that is not the installed one."""
    name = arena.rng.choice(_PACKAGES)
    wanted = arena.rng.choice(
        ("tokenizers>=0.99,<1", "numpy<1.24", "safetensors>=3.1", "huggingface-hub<0.20", "onnxruntime==1.14.1")
    )
    source = f'from transformers.utils.versions import require_version\n\nrequire_version("{wanted}")\n'
    _package(arena, name, source, "2.1.0")
    arena.serve(Code.of(f"return {name}", f"import {name}"))


def _requirement_unmet(arena: Arena) -> None:
    """A plugin whose metadata asks for more than is installed, resolved by the standard library's own look-up."""
    wanted = arena.rng.choice(("serving-plugins", "rank-ops-native", "feature-store-client", "model-registry-sdk"))
    arena.serve(Code.of(f'return version("{wanted}")', "from importlib.metadata import version"))


def _generated_code(arena: Arena) -> None:
    """Generated protobuf code that is newer or older than the runtime."""
    major = arena.rng.choice((5, 9, 11))
    source = (
        "from google.protobuf import runtime_version as _runtime_version\n\n"
        "_runtime_version.ValidateProtobufRuntimeVersion(\n"
        f"    _runtime_version.Domain.PUBLIC, {major}, 29, 1, '', 'serving/{arena.variation.stem}.proto'\n)\n"
    )
    name = f"{arena.rng.choice(('inference', 'predict', 'grpc_service', 'model_config'))}_pb2"
    arena.path(f"protos/{name}.py").write_text(source, encoding="utf-8")
    arena.serve(Code.of(f"return {name}", f"from protos import {name}"))


def _circular(arena: Arena) -> None:
    name = arena.rng.choice(_PACKAGES)
    folder = _package(arena, name, f"from {name}.pipeline import Pipeline\n")
    (folder / "pipeline.py").write_text(
        f"from {name}.stages import Stage\n\n\nclass Pipeline:\n    stage = Stage\n", encoding="utf-8"
    )
    (folder / "stages.py").write_text(
        f"from {name}.pipeline import Pipeline\n\n\nclass Stage:\n    owner = Pipeline\n", encoding="utf-8"
    )
    arena.serve(Code.of(f"return {name}.Pipeline", f"import {name}"))


def _extension(arena: Arena, source: str, *flags: str) -> str:
    """Compile an extension module of a package of the app and return the package's name."""
    name = arena.rng.choice(_PACKAGES)
    folder = _package(arena, name, "from ._native import run\n")
    compile_shared(source, folder / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}", *flags)
    return name


def _symbol_undefined(arena: Arena) -> None:
    symbol = arena.rng.choice(
        (
            "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE",
            "_ZN3c1021throwNullDataPtrErrorEv",
            "PyUnicode_AsUTF8Ex",
            "cblas_gemm_bf16bf16f32",
            "_ZN5torch8autograd13_wrap_outputsERKSt6vector",
        )
    )
    source = f"extern int {symbol}(void);\nvoid *PyInit__native(void) {{ return (void *)(long){symbol}(); }}\n"
    name = _extension(arena, source, "-Wl,-z,now")
    arena.serve(Code.of(f"return {name}.run", f"import {name}"))


def _init_missing(arena: Arena) -> None:
    name = _extension(arena, "int PyInit_native(void) { return 0; }\n")
    arena.serve(Code.of(f"return {name}.run", f"import {name}"))


def _library_missing(arena: Arena) -> None:
    """An extension linked against a library that is gone when it is imported."""
    vendor = arena.rng.choice(
        (
            "libopenblas.so.0.2",
            "libmkl_rt.so.2",
            "libicuuc.so.60",
            "libsndfile.so.0",
            "libprotobuf.so.17",
            "libonnx_proto.so.1",
        )
    )
    stub = arena.path(f"vendor/{vendor}")
    compile_shared("int vendor_init(void) { return 0; }\n", stub, f"-Wl,-soname,{vendor}")
    source = "int vendor_init(void);\nvoid *PyInit__native(void) { return (void *)(long)vendor_init(); }\n"
    name = _extension(arena, source, f"-L{stub.parent}", f"-l:{vendor}")
    stub.unlink()
    arena.serve(Code.of(f"return {name}.run", f"import {name}"))


def _library_version(arena: Arena) -> None:
    """An extension linked against a library of which an older version, without that symbol version, is installed."""
    vendor, node = arena.rng.choice(
        (("libopset.so.4", "OPSET_4.2"), ("libvendorblas.so.3", "BLAS_3.11"), ("libserving.so.1", "SERVING_1.9"))
    )
    stub = arena.path(f"vendor/{vendor}")
    script = stub.with_suffix(".map")
    code = "int vendor_init(void) { return 0; }\n"
    for version in (node, node.split("_")[0] + "_0.1"):
        script.write_text(f"{version} {{ global: vendor_init; }};\n", encoding="ascii")
        compile_shared(code, stub, f"-Wl,-soname,{vendor}", f"-Wl,--version-script={script}")
        if version == node:
            source = "int vendor_init(void);\nvoid *PyInit__native(void) { return (void *)(long)vendor_init(); }\n"
            name = _extension(arena, source, f"-L{stub.parent}", f"-l:{vendor}", f"-Wl,-rpath,{stub.parent}")
    arena.serve(Code.of(f"return {name}.run", f"import {name}"))


def _numpy_abi(arena: Arena) -> None:
    """An extension that calls numpy's C interface of an older generation than the installed numpy's."""
    import numpy

    version = arena.rng.choice(("0x1000009", "0x1000000", "0x1000010"))
    source = (
        "#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION\n#include <Python.h>\n#include <numpy/numpyconfig.h>\n"
        f"#undef NPY_VERSION\n#define NPY_VERSION {version}\n#include <numpy/arrayobject.h>\n"
        'static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_native", NULL, -1, NULL};\n'
        "PyMODINIT_FUNC PyInit__native(void) { import_array(); return PyModule_Create(&module); }\n"
    )
    name = _extension(arena, source, f"-I{sysconfig.get_paths()['include']}", f"-I{numpy.get_include()}")
    arena.serve(Code.of(f"return {name}.run", f"import {name}"))


FAULTS = (
    Fault(
        "python-module-missing",
        "dependency",
        "load",
        "python",
        "import a package that is not installed",
        _module_missing,
    ),
    Fault(
        "python-name-missing",
        "dependency",
        "load",
        "python",
        "import a name that a version no longer has",
        _name_missing,
    ),
    Fault(
        "python-attribute-missing",
        "dependency",
        "load",
        "numpy",
        "use a name that a version no longer has",
        _attribute_missing,
    ),
    Fault(
        "python-version-conflict",
        "dependency",
        "load",
        "python",
        "import a package that needs another version",
        _version_conflict,
    ),
    Fault(
        "python-requirement-unmet",
        "dependency",
        "load",
        "python",
        "look up a distribution that is not installed",
        _requirement_unmet,
    ),
    Fault(
        "python-generated-code",
        "dependency",
        "load",
        "protobuf",
        "import code generated for another runtime",
        _generated_code,
    ),
    Fault("python-circular-import", "dependency", "load", "python", "import a package that imports itself", _circular),
    Fault(
        "python-symbol-undefined",
        "dependency",
        "load",
        "python",
        "import an extension with an undefined symbol",
        _symbol_undefined,
        ("gcc",),
    ),
    Fault(
        "python-init-missing",
        "dependency",
        "load",
        "python",
        "import an extension without its entry point",
        _init_missing,
        ("gcc",),
    ),
    Fault(
        "python-library-missing",
        "dependency",
        "load",
        "python",
        "import an extension whose library is absent",
        _library_missing,
        ("linux", "gcc"),
    ),
    Fault(
        "python-library-version",
        "dependency",
        "load",
        "python",
        "import an extension whose library is older",
        _library_version,
        ("linux", "gcc"),
    ),
    Fault(
        "python-numpy-abi",
        "dependency",
        "load",
        "numpy",
        "import an extension of another numpy ABI",
        _numpy_abi,
        ("gcc", "python-headers"),
    ),
)
