"""The registry of reasons: which real error of a library is which failure.

The order decides, from the most specific to the least: what the caller did wrong, then memory, the device, operators,
rights and space, tokenizers, libraries, the network, files, shapes, and clocks. The codes of ONNX Runtime (1 FAIL,
2 INVALID_ARGUMENT …) are no reasons: 1 alone covers memory, shapes, versions and files.
Messages are those of onnxruntime 1.32, torch 2.13 and tokenizers 0.23; patterns see them masked (`reason.masked`).
"""

from __future__ import annotations

import re

from crashpath.runtime.errors import (
    Dependency,
    DeviceFault,
    DeviceInit,
    DeviceMemory,
    Failure,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    LoadTimeout,
    NativeCrash,
    NetworkAuth,
    PermissionDisk,
    ShapeInference,
    TokenizerBroken,
    UnsupportedOp,
)
from crashpath.runtime.reason import Reason
from crashpath.runtime.values import Phase

_ORT = ("onnxruntime.*",)
_TORCH = ("builtins.RuntimeError",)  # torch.jit.Error is what a script itself raised: the model's words, no reason
_NATIVE = (*_ORT, "builtins.RuntimeError")
_OS = ("builtins.OSError",)
_LOADING = (Phase.LOAD, Phase.WARMUP)
_STARTING = (Phase.PREPARE, Phase.LOAD, Phase.WARMUP)
_STATE = "onnxruntime.capi.onnxruntime_pybind11_state"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns))


def _on(
    failure: type[Failure] | type[InputError],
    types: tuple[str, ...],
    *patterns: str,
    phases: tuple[Phase, ...] = (),
    note: str = "",
) -> Reason:
    return Reason(failure, types, _any(*patterns) if patterns else None, phases, note)


_INPUT = (
    _on(
        InputError,
        _ORT,
        r"(?:Got invalid dimensions|Invalid rank) for input: (?P<input>\S+)",
        phases=(Phase.INFER,),
        note="the feed does not fit what the graph declares",
    ),
    _on(InputError, _ORT, r"Invalid input name: (?P<name>\S+)", r"Unexpected input data type", phases=(Phase.INFER,)),
    _on(InputError, ("builtins.ValueError",), r"^Required inputs \(\['(?P<input>[^']+)'", phases=(Phase.INFER,)),
    _on(InputError, _TORCH, r"^Input must be .* for input '(?P<input>[^']+)'", phases=(Phase.INFER,)),
)

_MEMORY = (
    _on(DeviceMemory, ("torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError")),
    _on(
        DeviceMemory,
        _NATIVE,
        r"(?:CUDA|HIP|XPU|MPS|NPU)(?: backend)? out of memory",
        r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED",
        r"CUDA(?: error|_FAILURE| failure)[ :\d]*:? ?out of memory",
        r"CL_OUT_OF_(?:RESOURCES|HOST_MEMORY)|CL_MEM_OBJECT_ALLOCATION_FAILURE|VK_ERROR_OUT_OF_DEVICE_MEMORY",
    ),
    _on(HostMemory, ("builtins.MemoryError",)),
    _on(
        HostMemory,
        (*_NATIVE, "builtins.OSError"),
        r"std::bad_alloc",
        r"Failed to allocate memory for requested buffer of size",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
        r"[Cc]annot allocate memory",
        r"system error number 12\b",
        note="the arena of a device says the same as that of the host: the backend knows which it has",
    ),
    _on(HostMemory, _TORCH, r"can't start new thread"),
)

_DEVICE = (
    _on(DeviceFault, (f"{_STATE}.DeviceReset", f"{_STATE}.EngineError")),
    _on(
        DeviceFault,
        (*_NATIVE, "torch.AcceleratorError"),
        r"illegal memory access|device-side assert|misaligned address|unspecified launch failure",
        r"uncorrectable ECC|device(?: has been)? (?:lost|removed)|fallen off the bus|\bXid\b",
        r"(?:CUBLAS|CUDNN|CUSOLVER|CUFFT)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)",
        r"cudaError(?:IllegalAddress|Assert|LaunchFailure|MisalignedAddress)",
    ),
    _on(
        DeviceInit,
        (*_NATIVE, "builtins.AssertionError", "torch.AcceleratorError"),
        r"no kernel image is available",
        r"no CUDA-capable device|[Ff]ound no NVIDIA driver|driver version is insufficient|CUDA driver initialization",
        r"not compiled with CUDA enabled|[Cc]annot initialize CUDA|deserialize object on (?:a )?CUDA device",
        r"invalid device ordinal|No (?:CUDA|HIP) GPUs are available|(?:CUBLAS|CUDNN)_STATUS_NOT_INITIALIZED",
        r"[Uu]nknown [Pp]rovider [Tt]ype|is not registered .*ExecutionProvider",
        r"ExecutionProvider.*(?:not (?:available|supported|enabled|found)|[Ff]ailed to (?:create|initiali[sz]e))",
        r"Failed to load library (?:<path>/)?libonnxruntime_providers_\w+\.so",
    ),
    _on(
        DeviceInit,
        ("builtins.ImportError", "builtins.OSError", *_NATIVE),
        r"\blib(?:cuda|cudart|cublas\w*|cudnn\w*|cufft|curand|cusparse\w*|cusolver|nccl|nvinfer\w*|nvidia-\w+|nvrtc"
        r"|amdhip\w*|rocblas|hip\w+|miopen\w*|Qnn\w+|OpenCL|vulkan|ze_loader)\.so[.\d]*: cannot open shared object",
        note="the loader's words are those of an import, but what is missing belongs to a device",
    ),
)

_OPERATORS = (
    _on(
        UnsupportedOp,
        _ORT,
        r"Could not find an implementation for",
        r"No Op registered for|is not a registered function/op",
        r"Unsupported (?:data ?type|tensor type)|is not (?:currently )?(?:implemented|supported)\b",
    ),
    _on(UnsupportedOp, (f"{_STATE}.NotImplemented", f"{_STATE}.ModelRequiresCompilation")),
    _on(UnsupportedOp, ("torch.jit.frontend.*",)),
    _on(
        UnsupportedOp,
        _TORCH,
        r"Unknown builtin op: |Unknown type name|Unknown type constructor|Could not find any similar ops",
        r"\" not implemented for '|Could not run 'aten::|[Ll]ow precision dtypes not supported",
        r"is not currently supported|(?:requires|only supported on) .*compute capability|[Uu]nsupported dtype",
        r"not compiled with (?:MKLDNN|LAPACK|QNNPACK|FBGEMM|oneDNN)|Didn't find engine for operation quantized",
    ),
    _on(UnsupportedOp, ("builtins.NotImplementedError",)),
)

_HOST = (
    _on(PermissionDisk, ("builtins.PermissionError",)),
    _on(
        PermissionDisk,
        (*_NATIVE, "builtins.OSError", "builtins.ValueError"),
        r"[Pp]ermission denied|No space left on device|Read-only file system|[Dd]isk quota exceeded",
        r"Too many open files|system error number (?:1|13|23|24|28|30|122)\b",
        r"insufficient shared memory|unable to (?:open|write|resize|allocate) shared memory",
        r"os error (?:13|23|24|28|30|122)\b",
    ),
    _on(
        TokenizerBroken,
        ("builtins.Exception",),
        r"did not match any variant of untagged enum|Missing \[UNK\] token|(?:WordPiece|BPE|Unigram|WordLevel) error",
        r"Error while initializing (?:BPE|WordPiece|Unigram|WordLevel)|sentencepiece.*[Pp]arse",
        r"[Uu]nknown pre-?tokenizer|backend tokenizer|chat[_ ]template",
    ),
    _on(TokenizerBroken, ("jinja2.exceptions.*", "tokenizers.*"), phases=(Phase.PREPARE,)),
    _on(
        TokenizerBroken,
        ("builtins.Exception",),
        r"at line \d+ column \d+|os error \d+|EOF while parsing|[Uu]nable to load vocab|stream did not contain valid",
        phases=(Phase.PREPARE,),
        note="what the tokenizers library says of a file that it cannot read",
    ),
    _on(
        TokenizerBroken,
        ("builtins.FileNotFoundError", "json.decoder.JSONDecodeError", "builtins.UnicodeDecodeError"),
        phases=(Phase.PREPARE,),
    ),
    _on(Dependency, ("builtins.ImportError", "importlib.metadata.PackageNotFoundError")),
    _on(
        Dependency,
        (*_NATIVE, "builtins.OSError", "builtins.AttributeError"),
        r"undefined symbol|cannot open shared object file|version `\w+_[\d.]+' not found|file too short|invalid ELF",
        r"compiled using NumPy|numpy\.(?:dtype|ufunc) size changed|Failed to load library|Failed to get symbol",
    ),
)

_NETWORK = (
    _on(
        LoadTimeout,
        ("builtins.OSError", "urllib3.*", "requests.*", "httpx.*", "httpcore.*", "huggingface_hub.*"),
        r"timed out|[Tt]imeout",
        phases=_STARTING,
        note="a fetch that was never answered",
    ),
    _on(
        NetworkAuth,
        (
            "builtins.ConnectionError",
            "socket.gaierror",
            "ssl.SSLError",
            "urllib.error.URLError",
            "urllib3.*",
            "requests.*",
            "httpx.*",
            "httpcore.*",
            "huggingface_hub.*",
        ),
    ),
    _on(
        NetworkAuth,
        _OS,
        r"gated repo|Name or service not known|Temporary failure in name resolution|40[137] Client Error"
        r"|couldn't connect to|[Nn]etwork is unreachable|No route to host|offline mode",
    ),
)

_FILES = (
    _on(
        LoadCorrupt,
        tuple(f"{_STATE}.{name}" for name in ("NoSuchFile", "NoModel", "InvalidProtobuf", "ModelLoadCanceled")),
    ),
    _on(
        LoadCorrupt,
        _ORT,
        r"Protobuf parsing failed|No graph was found in the protobuf|system error number \d+",
        r"Unsupported model IR version|Missing opset|opset versions\. Opset \d+ is under development",
        r"[Ii]nvalid model\b|External data path|GetExtDataFromTensorProto|External initializer",
        r"Unrecognized attribute|graph is not acyclic|is not a graph input, initializer, or output",
        r"Deserialize tensor|ORT format model|does not exist in the graph|Duplicate definition of name",
    ),
    _on(LoadCorrupt, (f"{_STATE}.InvalidGraph",), note="what shape or type inference did not say"),
    _on(
        LoadCorrupt,
        _ORT,
        r"Invalid input name|Invalid output name|Missing Input",
        note="the artefact does not take or give what the folder says",
    ),
    _on(LoadCorrupt, ("builtins.ValueError",), r"^Required inputs \(", phases=_LOADING),
    _on(
        LoadCorrupt,
        _TORCH,
        r"PytorchStreamReader|maximum supported version for reading|failed finding central directory",
        r"[Uu]nsupported (?:archive|file) version|but the minimum supported version",
        r"^\s*forward\(\) (?:is missing value|expected at most)|Unknown keyword argument",
        r"constants\.pkl|data\.pkl|Invalid magic number|unpickl",
    ),
    _on(
        LoadCorrupt,
        _TORCH,
        r"object has no attribute or method|INTERNAL ASSERT FAILED|^\s*expected .* but found|Expected .* got .*:\s",
        phases=(Phase.LOAD,),
        note="an archive whose code does not parse",
    ),
    _on(LoadCorrupt, ("builtins.ValueError",), r"^The provided filename .*(?:does not exist|is a directory)"),
    _on(
        LoadCorrupt,
        (
            "builtins.FileNotFoundError",
            "builtins.IsADirectoryError",
            "builtins.EOFError",
            "zipfile.BadZipFile",
            "_pickle.UnpicklingError",
            "google.protobuf.message.DecodeError",
            "safetensors.*",
            "safetensors_rust.*",
            "onnx.*",
        ),
        phases=_LOADING,
    ),
)

_SHAPES = (
    _on(
        ShapeInference,
        _ORT,
        r"\[(?:Shape|Type)InferenceError\]|Type Error: Type|bound to different types",
        r"(?:Got invalid dimensions|Invalid rank) for input|Unexpected input data type",
        r"cannot be reshaped|[Dd]imension mismatch|[Ii]ncompatible dimensions|mismatched dimensions|must match",
        r"[Aa]ttempting to broadcast|out of (?:data )?bounds|Size\(\) must be >= 0|SafeInt\w*\(\) ?Integer overflow",
        r"[Ii]nvalid (?:dimension|shape|rank|axis)|input_shape|shape.* (?:mismatch|was false)|[Ii]ncompatible shapes",
    ),
    _on(
        ShapeInference,
        (*_TORCH, "builtins.IndexError"),
        r"shapes cannot be multiplied|must match the size of tensor|Sizes of tensors must match|expects each tensor",
        r"is invalid for input of size|view size is not compatible|negative dimension|size calculation overflowed",
        r"to have \d+ channels|[Ii]ndex out of range|index \d+ is out of (?:bounds|range)|[Dd]imension out of range",
        r"to have the same dtype|expected scalar type|Input type .* and (?:weight|bias) type|[Ss]ize mismatch",
        r"must be (?:the same|at least)|need to be at least|[Ii]ncorrect batch size|size of dimension",
        r"Expected (?:\d+D|input|tensor|all tensors).* (?:dimension|size|dtype|got)|doesn't match the broadcast shape",
        r"inconsistent tensor size|mat1 and mat2|[Ii]nvalid shape|expected .* to have .* (?:dtype|shape|dimensions?)",
    ),
)

_CLOCKS = (
    _on(Hang, _ORT, r"terminate flag being set", note="what `Backend.cancel` leaves"),
    _on(LoadTimeout, ("builtins.TimeoutError", "subprocess.TimeoutExpired"), phases=_STARTING),
    _on(Hang, ("builtins.TimeoutError", "subprocess.TimeoutExpired"), phases=(Phase.INFER, Phase.SHUTDOWN)),
    _on(NativeCrash, ("concurrent.futures.process.BrokenProcessPool",)),
)

REASONS: tuple[Reason, ...] = (
    *_INPUT,
    *_MEMORY,
    *_DEVICE,
    *_OPERATORS,
    *_HOST,
    *_NETWORK,
    *_FILES,
    *_SHAPES,
    *_CLOCKS,
)
"""In the order in which they are asked; the first that holds names the failure."""
