"""Reasons that the machine and its surroundings give: rights, space, tokenizers' files, libraries, the network."""

from __future__ import annotations

from crashpath.runtime.errors import Dependency, LoadTimeout, NetworkAuth, PermissionDisk, TokenizerBroken
from crashpath.runtime.reason_words import NATIVE, OS, STARTING, on
from crashpath.runtime.values import Phase

REFUSED = (
    on(
        PermissionDisk,
        NATIVE,
        r"\bSystemError : (?:1|13|23|24|28|30|122)\b",
        note="asked before the codes of ONNX Runtime: it gives this one the code of a model that must be compiled",
    ),
)

HOST = (
    on(PermissionDisk, ("builtins.PermissionError",)),
    on(
        PermissionDisk,
        (*NATIVE, "builtins.OSError"),
        r"[Pp]ermission denied|No space left on device|Read-only file system|[Dd]isk quota exceeded",
        r"Too many open files|system error number (?:1|13|23|24|28|30|122)\b",
        r"insufficient shared memory|unable to (?:open|write|resize|allocate) shared memory",
        r"os error (?:13|23|24|28|30|122)\b",
    ),
    on(
        PermissionDisk,
        ("builtins.Exception",),
        r"\(os error (?:13|23|24|28|30|122)\)",
        note="how libraries written in Rust (tokenizers) tell what the system refused",
    ),
    on(
        TokenizerBroken,
        ("builtins.Exception",),
        r"did not match any variant of untagged enum|Missing \[UNK\] token|(?:WordPiece|BPE|Unigram|WordLevel) error",
        r"Error while initializing (?:BPE|WordPiece|Unigram|WordLevel)|sentencepiece.*[Pp]arse",
        r"[Uu]nknown pre-?tokenizer|backend tokenizer|chat[_ ]template",
    ),
    on(TokenizerBroken, ("jinja2.exceptions.*", "tokenizers.*"), phases=(Phase.PREPARE,)),
    on(
        TokenizerBroken,
        ("builtins.Exception",),
        r"at line \d+ column \d+|os error \d+|EOF while parsing|[Uu]nable to load vocab|stream did not contain valid",
        phases=(Phase.PREPARE,),
        note="what the tokenizers library says of a file that it cannot read",
    ),
    on(
        TokenizerBroken,
        ("builtins.FileNotFoundError", "json.decoder.JSONDecodeError", "builtins.UnicodeDecodeError"),
        phases=(Phase.PREPARE,),
    ),
    on(Dependency, ("builtins.ImportError", "importlib.metadata.PackageNotFoundError")),
    on(
        Dependency,
        (*NATIVE, "builtins.OSError", "builtins.AttributeError"),
        r"undefined symbol|cannot open shared object file|version `\w+_[\d.]+' not found|file too short|invalid ELF",
        r"compiled using NumPy|numpy\.(?:dtype|ufunc) size changed|Failed to load library|Failed to get symbol",
    ),
)

NETWORK = (
    on(
        LoadTimeout,
        ("builtins.OSError", "urllib3.*", "requests.*", "httpx.*", "httpcore.*", "huggingface_hub.*"),
        r"timed out|[Tt]imeout",
        phases=STARTING,
        note="a fetch that was never answered",
    ),
    on(
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
    on(
        NetworkAuth,
        OS,
        r"gated repo|Name or service not known|Temporary failure in name resolution|40[137] Client Error"
        r"|couldn't connect to|[Nn]etwork is unreachable|No route to host|offline mode",
    ),
)
