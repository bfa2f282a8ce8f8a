"""Signature: the deterministic key of a variant, with the tree of parts that it was made of.

``sig2`` is made of the exception types from the root outward, the masked message of the root, and the innermost
frame of the project's own code that does not only check for its caller (`past_guards`). One frame, because more frames
part the same bug faster than they part different ones: on Java traces with a known bug (benchmarks/frames.py) F1 over
pairs is .85 with one, .64 with two. Where the message says nothing and no code is the project's own, the innermost
library stands for it. The message stays in the key, because native libraries raise one type for everything: what
differs only in wording is brought together by clustering, where that can be undone; here it could not.

An algorithm id is never reused: a change of what a variant's key is made of is a new id. ``sig1`` took the innermost
own frame whatever it was, with the numbers in its name, and no library.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

from crashpath.ingest.guards import past_guards
from crashpath.ingest.mask import mask
from crashpath.ingest.model import Frame, Parsed, Part, Root, Signature, Thrown, Variant

ALGORITHM = "sig2"
TYPES = 4
"""Exception types of the chain that count, from the root outward."""

FRAMES = 1
"""In-project frames that count, innermost first."""

VARIANT_FRAMES = 5
"""In-project frames that a variant keeps, so that a later algorithm can use more of them."""

MESSAGE_CHARS = 2_000
"""What of a message counts; the rest of a longer one is data that was printed with it."""

TEXT_CHARS = 800
"""Length of the text that is embedded; the encoder reads about 256 word pieces."""

_BARE_NAMES = frozenset({"Error", "Exception", "Fail", "Timeout", "Failure"})
_BLANKS = re.compile(r"\s+")
_PLACEHOLDER = re.compile(r"<([a-z]+)>")
_ANYBODYS = re.compile(
    r"^(?:lib(?:c|m|dl|rt|pthread|gcc_s|c\+\+\w*|stdc\+\+|art|utils|base|log)|ld\S*|linux-vdso|\[vdso\]|ntdll|kernel32"
    r"|kernelbase|ucrtbase|msvcp\w*|vcruntime\w*|app_process\w*|threading|runpy|asyncio\S*|concurrent\S*|contextlib|functools"
    r"|importlib\S*|multiprocessing\S*|subprocess|java\S*|jdk\S*|sun\S*|node|internal/\S*|<frozen \S*)$"
)
"""Modules that say nothing of a failure, because any trace may end in them."""
_CODES = re.compile(r"\b(?:SEGV|BUS|ILL|FPE|TRAP|SI)_[A-Z]+\b|\bSIG[A-Z]+\b|<[a-z]+>")
_SAYS = re.compile(r"[^\W\d_]{2}")
"""Something in a message besides codes and placeholders."""
_JOB = re.compile(
    r"^\S+: line \d+: +\d+ (Killed|Illegal instruction|Segmentation fault|Aborted|Bus error|Floating point exception"
    r"|Terminated|Trace/breakpoint trap) +(?:\(core dumped\) *)?(.*)$"
)
_NUMBERED = re.compile(r"(?<=[A-Za-z_])\d[\d_]*$")
_GENERATED = re.compile(r"\$(?:\d+|[0-9a-f]{6,})(?=$|\$)")


def make_variant(parsed: Parsed, root: Root) -> Variant:
    """Return what a signature is made from: types from the root outward, the root, in-project frames innermost first.

    Both arguments come from redacted text where the result is to be stored.
    """
    chain = _from_root(parsed.chain, root)
    frames = next((own for thrown in chain if (own := _own_frames(thrown))), ())
    frames = frames or next((foreign for thrown in chain if (foreign := _innermost(thrown.frames))), ())
    message = root.message.strip()
    if not message and parsed.exit_code is not None:
        message = f"exit code {parsed.exit_code}"
    return Variant(
        chain=tuple(thrown.type for thrown in chain)[:TYPES],
        root_type=root.type or parsed.signal or "",
        root_message=message[: 2 * MESSAGE_CHARS],
        frames=frames,
    )


def _from_root(chain: tuple[Thrown, ...], root: Root) -> tuple[Thrown, ...]:
    """Return the chain from the exception that the root line belongs to; all of it where it belongs to none."""
    for i, thrown in enumerate(chain):
        if thrown.line <= root.line <= thrown.line + thrown.message.count("\n"):
            return chain[i:]
    return chain


def _own_frames(thrown: Thrown) -> tuple[Frame, ...]:
    return tuple(frame for frame in reversed(thrown.frames) if frame.in_project)[:VARIANT_FRAMES]


def _innermost(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the innermost frames of libraries that are not in every trace."""
    telling = (frame for frame in reversed(frames) if frame.module and not _ANYBODYS.match(frame.module))
    return tuple(itertools.islice(telling, VARIANT_FRAMES))


def sign(variant: Variant) -> Signature:
    """Return the signature of a variant under ``sig2``."""
    message = masked_message(variant.root_message)
    own = past_guards([frame for frame in variant.frames if frame.in_project])
    frames = own or (() if _SAYS.search(_CODES.sub("", message)) else past_guards(variant.frames))
    return _signed(_types(variant), message, tuple((_plain(frame.function), frame.module) for frame in frames[:FRAMES]))


def _plain(function: str) -> str:
    """Return a function's name without the numbers that only tell copies of it apart."""
    return _NUMBERED.sub("", _GENERATED.sub("", function))


def masked_message(message: str) -> str:
    """Return a message as it counts in a signature: on one line, cut to size, masked.

    Of what a shell says of a job that died, the script, line and pid in front and the flags behind are left out.
    """
    line = _BLANKS.sub(" ", message[: 2 * MESSAGE_CHARS]).strip()
    if (job := _JOB.match(line)) is not None:
        command = itertools.takewhile(lambda word: not word.startswith(("--", "$", ">", "|", "2>")), job[2].split())
        line = " ".join((job[1], *command))
    return mask(line[:MESSAGE_CHARS].rstrip())


@lru_cache(maxsize=16_384)
def _signed(types: tuple[str, ...], message: str, frames: tuple[tuple[str, str], ...]) -> Signature:
    encoded = json.dumps([ALGORITHM, types, message, frames], ensure_ascii=True, separators=(",", ":"))
    digest = blake2b(encoded.encode("ascii"), digest_size=8).hexdigest()
    tree = Part("signature", f"{ALGORITHM}-{digest}", tuple(_parts(types, message, frames)))
    return Signature(id=tree.value, text=_readable(types, message, frames), tree=tree)


def _types(variant: Variant) -> tuple[str, ...]:
    types: list[str] = []
    for name in (variant.root_type, *variant.chain):
        plain = type_name(name)
        if plain and plain not in types:
            types.append(plain)
    return tuple(types[:TYPES])


@lru_cache(maxsize=4_096)
def type_name(name: str) -> str:
    """Return a type without the modules it moved through: ``torch.cuda.OutOfMemoryError`` → ``OutOfMemoryError``.

    A name that says nothing alone keeps its library: ``onnxruntime.capi.onnxruntime_pybind11_state.Fail`` →
    ``onnxruntime.Fail``, ``_queue.Error`` → ``queue.Error``.
    """
    name = name.strip()
    first, _, rest = name.partition(".")
    last = rest.rpartition(".")[2] or name
    if not rest or last not in _BARE_NAMES:
        return last
    return f"{first.lstrip('_')}.{last}"


def _parts(types: tuple[str, ...], message: str, frames: Iterable[tuple[str, str]]) -> Iterable[Part]:
    yield Part("types", str(len(types)), tuple(Part("root" if not i else "wrapped in", t) for i, t in enumerate(types)))
    yield Part("message", message)
    shown = tuple(Part("frame", f"{module}: {function}" if module else function) for function, module in frames)
    yield Part("frames", str(len(shown)), shown)


def _readable(types: tuple[str, ...], message: str, frames: tuple[tuple[str, str], ...]) -> str:
    """Return the text for a sentence encoder: root type and message, placeholders as plain words.

    The wrapping types and the frame are left out: they belong to one deployment, and the same failure elsewhere
    should be near. Without a message they are all there is to say.
    """
    plain = _PLACEHOLDER.sub(lambda match: "N" if match[1] == "n" else match[1], message)
    kind = types[0] if types else ""
    if plain:
        return (f"{kind}: {plain}" if kind and not plain.startswith(kind) else plain)[:TEXT_CHARS]
    where = " ".join(f"in {module} {function}".strip() for function, module in frames)
    return " ".join(part for part in (*types, where) if part)[:TEXT_CHARS]


def explain(signature: Signature, width: int = 80) -> str:
    """Return the tree of a signature as text, at most ``width`` columns wide."""
    return "\n".join(_lines(signature.tree, "", "", width))


def _lines(part: Part, lead: str, below: str, width: int) -> Iterable[str]:
    label = f"{part.name}: "
    room = max(16, width - len(lead) - len(label))
    wrapped = textwrap.wrap(part.value, room, break_on_hyphens=False) or ["(none)"]
    yield f"{lead}{label}{wrapped[0]}"
    bar = "│ " if part.parts else "  "
    for more in wrapped[1:]:
        yield f"{below}{bar}{' ' * max(0, len(label) - 2)}{more}"
    for i, child in enumerate(part.parts):
        last = i == len(part.parts) - 1
        yield from _lines(child, below + ("└ " if last else "├ "), below + ("  " if last else "│ "), width)
