"""The registry of reasons: which real error of a library is which failure.

The order decides, from the most specific to the least: what the caller did wrong, then memory, the device, operators,
rights and space, tokenizers, libraries, the network, files, shapes, and clocks. The codes of ONNX Runtime (1 FAIL,
2 INVALID_ARGUMENT …) are no reasons: 1 alone covers memory, shapes, versions and files.
Messages are those of onnxruntime 1.32, torch 2.13 and tokenizers 0.23; patterns see them masked (`reason.masked`).
"""

from __future__ import annotations

from crashpath.runtime.errors import (
    DeviceFault,
    DeviceInit,
    DeviceMemory,
    Hang,
    HostMemory,
    InputError,
    LoadCorrupt,
    LoadTimeout,
    NativeCrash,
    ShapeInference,
    UnsupportedOp,
)
from crashpath.runtime.reason import Reason
from crashpath.runtime.reason_host import HOST, NETWORK, REFUSED
from crashpath.runtime.reason_words import LOADING, NATIVE, ORT, STARTING, STATE, TORCH, on
from crashpath.runtime.values import Phase

_INPUT = (
    on(
        InputError,
        ORT,
        r"(?:Got invalid dimensions|Invalid rank) for input: (?P<input>\S+)",
        phases=(Phase.INFER,),
        note="the feed does not fit what the graph declares",
    ),
    on(InputError, ORT, r"Invalid input name: (?P<name>\S+)", r"Unexpected input data type", phases=(Phase.INFER,)),
    on(InputError, ("builtins.ValueError",), r"^Required inputs \(\['(?P<input>[^']+)'", phases=(Phase.INFER,)),
    on(InputError, TORCH, r"^Input must be .* for input '(?P<input>[^']+)'", phases=(Phase.INFER,)),
)

_MEMORY = (
    on(DeviceMemory, ("torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError")),
    on(
        DeviceMemory,
        NATIVE,
        r"(?:CUDA|HIP|XPU|MPS|NPU)(?: backend)? out of memory",
        r"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED",
        r"CUDA(?: error|_FAILURE| failure)[ :\d]*:? ?out of memory",
        r"CL_OUT_OF_(?:RESOURCES|HOST_MEMORY)|CL_MEM_OBJECT_ALLOCATION_FAILURE|VK_ERROR_OUT_OF_DEVICE_MEMORY",
    ),
    on(HostMemory, ("builtins.MemoryError",)),
    on(
        HostMemory,
        (*NATIVE, "builtins.OSError"),
        r"std::bad_alloc",
        r"Failed to allocate memory for requested buffer of size",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
        r"[Cc]annot allocate memory",
        r"system error number 12\b",
        note="the arena of a device says the same as that of the host: the backend knows which it has",
    ),
    on(HostMemory, TORCH, r"can't start new thread"),
)

_DEVICE = (
    on(DeviceFault, (f"{STATE}.DeviceReset", f"{STATE}.EngineError")),
    on(
        DeviceFault,
        (*NATIVE, "torch.AcceleratorError"),
        r"illegal memory access|device-side assert\b|misaligned address|unspecified launch failure",
        r"illegal instruction was encountered|hardware stack error|invalid program counter",
        r"operation not supported on global/shared address space|launch timed out and was terminated",
        r"uncorrectable ECC|device(?: has been)? (?:lost|removed)|fallen off the bus|\bXid\b",
        r"(?:CUBLAS|CUDNN|CUSOLVER|CUFFT)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR|MAPPING_ERROR)",
        r"cudaError(?:IllegalAddress|Assert|LaunchFailure|MisalignedAddress)",
    ),
    on(
        DeviceInit,
        (*NATIVE, "builtins.AssertionError", "torch.AcceleratorError"),
        r"no kernel image is available",
        r"no CUDA-capable device|[Ff]ound no NVIDIA driver|driver version is insufficient|CUDA driver initialization",
        r"CUDA driver is a stub|unsupported display driver|forward compatibility was attempted|unsupported toolchain",
        r"re-initialize CUDA in forked subprocess|failed to open libnvrtc|Duplicate GPU detected",
        r"not compiled with CUDA enabled|[Cc]annot initialize CUDA|deserialize object on (?:a )?CUDA device",
        r"invalid device ordinal|No (?:CUDA|HIP) GPUs are available|(?:CUBLAS|CUDNN)_STATUS_NOT_INITIALIZED",
        r"[Uu]nknown [Pp]rovider [Tt]ype|is not registered .*ExecutionProvider",
        r"ExecutionProvider.*(?:not (?:available|supported|enabled|found)|[Ff]ailed to (?:create|initiali[sz]e))",
        r"Failed to load library (?:<path>/)?libonnxruntime_providers_\w+\.so",
    ),
    on(
        DeviceInit,
        ("builtins.ImportError", "builtins.OSError", *NATIVE),
        r"\blib(?:cuda|cudart|cublas\w*|cudnn\w*|cufft|curand|cusparse\w*|cusolver|nccl|nvinfer\w*|nvidia-\w+|nvrtc"
        r"|amdhip\w*|rocblas|hip\w+|miopen\w*|Qnn\w+|OpenCL|vulkan|ze_loader)\.so[.\d]*: cannot open shared object",
        note="the loader's words are those of an import, but what is missing belongs to a device",
    ),
)

_OPERATORS = (
    on(
        UnsupportedOp,
        ORT,
        r"Could not find an implementation for",
        r"No Op registered for|is not a registered function/op",
        r"Unsupported (?:data ?type|tensor type)|is not (?:currently )?(?:implemented|supported)\b",
    ),
    on(UnsupportedOp, (f"{STATE}.NotImplemented", f"{STATE}.ModelRequiresCompilation")),
    on(UnsupportedOp, ("torch.jit.frontend.*",)),
    on(
        UnsupportedOp,
        TORCH,
        r"Unknown builtin op: |Unknown type name|Unknown type constructor|Could not find any similar ops",
        r"\" not implemented for '|Could not run '\w+::|[Ll]ow precision dtypes not supported",
        r"unable to find an engine to execute this computation|No available kernel\. Aborting execution",
        r"is not currently supported|(?:requires|only supported on) .*compute capability|[Uu]nsupported dtype",
        r"not compiled with (?:MKLDNN|LAPACK|QNNPACK|FBGEMM|oneDNN)|Didn't find engine for operation quantized",
    ),
    on(UnsupportedOp, ("builtins.NotImplementedError",)),
)

_FILES = (
    on(
        LoadCorrupt,
        tuple(f"{STATE}.{name}" for name in ("NoSuchFile", "NoModel", "InvalidProtobuf", "ModelLoadCanceled")),
    ),
    on(
        LoadCorrupt,
        ORT,
        r"Protobuf parsing failed|No graph was found in the protobuf|system error number \d+",
        r"Unsupported model IR version|Missing opset|opset versions\. Opset \d+ is under development",
        r"[Ii]nvalid model\b|External data path|GetExtDataFromTensorProto|External initializer",
        r"Unrecognized attribute|graph is not acyclic|is not a graph input, initializer, or output",
        r"Deserialize tensor|ORT format model|does not exist in the graph|Duplicate definition of name",
    ),
    on(LoadCorrupt, (f"{STATE}.InvalidGraph",), note="what shape or type inference did not say"),
    on(
        LoadCorrupt,
        ORT,
        r"Invalid input name|Invalid output name|Missing Input",
        note="the artefact does not take or give what the folder says",
    ),
    on(LoadCorrupt, ("builtins.ValueError",), r"^Required inputs \(", phases=LOADING),
    on(
        LoadCorrupt,
        TORCH,
        r"PytorchStreamReader|maximum supported version for reading|failed finding central directory",
        r"[Uu]nsupported (?:archive|file) version|but the minimum supported version",
        r"^\s*forward\(\) (?:is missing value|expected at most)|Unknown keyword argument",
        r"constants\.pkl|data\.pkl|Invalid magic number|unpickl",
    ),
    on(
        LoadCorrupt,
        TORCH,
        r"object has no attribute or method|INTERNAL ASSERT FAILED|^\s*expected .* but found|Expected .* got .*:\s",
        phases=(Phase.LOAD,),
        note="an archive whose code does not parse",
    ),
    on(LoadCorrupt, ("builtins.ValueError",), r"^The provided filename .*(?:does not exist|is a directory)"),
    on(
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
        phases=LOADING,
    ),
)

_SHAPES = (
    on(
        ShapeInference,
        ORT,
        r"\[(?:Shape|Type)InferenceError\]|Type Error: Type|bound to different types",
        r"(?:Got invalid dimensions|Invalid rank) for input|Unexpected input data type",
        r"cannot be reshaped|[Dd]imension mismatch|[Ii]ncompatible dimensions|mismatched dimensions|must match",
        r"[Aa]ttempting to broadcast|out of (?:data )?bounds|Size\(\) must be >= 0|SafeInt\w*\(\) ?Integer overflow",
        r"[Ii]nvalid (?:dimension|shape|rank|axis)|input_shape|shape.* (?:mismatch|was false)|[Ii]ncompatible shapes",
    ),
    on(
        ShapeInference,
        (*TORCH, "builtins.IndexError"),
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
    on(Hang, ORT, r"terminate flag being set", note="what `Backend.cancel` leaves"),
    on(LoadTimeout, ("builtins.TimeoutError", "subprocess.TimeoutExpired"), phases=STARTING),
    on(Hang, ("builtins.TimeoutError", "subprocess.TimeoutExpired"), phases=(Phase.INFER, Phase.SHUTDOWN)),
    on(NativeCrash, ("concurrent.futures.process.BrokenProcessPool",)),
)

REASONS: tuple[Reason, ...] = (
    *_INPUT,
    *_MEMORY,
    *_DEVICE,
    *REFUSED,
    *_OPERATORS,
    *HOST,
    *NETWORK,
    *_FILES,
    *_SHAPES,
    *_CLOCKS,
)
"""In the order in which they are asked; the first that holds names the failure."""
