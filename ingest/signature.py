"""Signature: the deterministic key of a variant, with the tree of parts that it was made of.

``sig1`` is made of the exception types from the root outward, the masked message of the root, and the innermost
frame of the project's own code. One frame, because more frames part the same bug faster than they part different
ones: on Java traces with a known bug (benchmarks/frames.py) F1 over pairs is .85 with one, .64 with two. The message
stays in the key, because native libraries raise one type for everything: what differs only in wording is brought
together by clustering, where that can be undone; here it could not.

An algorithm id is never reused: a change of what a variant's key is made of is a new id.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from crashpath.ingest.mask import mask
from crashpath.ingest.model import Frame, Parsed, Part, Root, Signature, Thrown, Variant

ALGORITHM = "sig1"
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
_GENERATED = re.compile(r"\$(?:\d+|[0-9a-f]{6,})(?=$|\$)")


def make_variant(parsed: Parsed, root: Root) -> Variant:
    """Return what a signature is made from: types from the root outward, the root, in-project frames innermost first.

    Both arguments come from redacted text where the result is to be stored.
    """
    chain = _from_root(parsed.chain, root)
    frames = next((own for thrown in chain if (own := _own_frames(thrown))), ())
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


def sign(variant: Variant) -> Signature:
    """Return the signature of a variant under ``sig1``."""
    return _signed(
        _types(variant),
        masked_message(variant.root_message),
        tuple((_GENERATED.sub("", frame.function), frame.module) for frame in variant.frames if frame.in_project)[
            :FRAMES
        ],
    )


def masked_message(message: str) -> str:
    """Return a message as it counts in a signature: on one line, cut to size, masked."""
    return mask(_BLANKS.sub(" ", message[: 2 * MESSAGE_CHARS]).strip()[:MESSAGE_CHARS].rstrip())


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
