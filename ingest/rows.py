"""What a value looks like in a table, and back: variants, texts and roles of exemplars."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

import zstandard

from crashpath.ingest.keying import keying
from crashpath.ingest.model import Analysis, Frame, Part, Phase, Record, Role, Variant
from crashpath.ingest.schema import Json
from crashpath.ingest.storable import fact, storable
from crashpath.ingest.trees import tree_json
from crashpath.ingest.victims import victim_of

#: One letter a line.
_LETTER = {Role.ROOT: "R", Role.CASCADE: "C", Role.CONFIRMATION: "W", Role.CONTEXT: "-"}
_ROLE = {letter: role for role, letter in _LETTER.items()}


def variant_key(variant: Variant) -> str:
    """Hash the content of a variant: 40 hex digits, the same on any machine."""
    content = json.dumps(
        [variant.chain, variant.root_type, variant.root_message, variant.frames],
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def pack(text: str) -> bytes:
    """Compress a text for the store."""
    return zstandard.ZstdCompressor(level=3).compress(text.encode("utf-8", "replace"))


def unpack_text(packed: bytes) -> str:
    """Return what ``pack`` compressed."""
    return zstandard.ZstdDecompressor().decompress(packed).decode("utf-8")


def pack_roles(roles: tuple[Role, ...]) -> bytes:
    """Compress the roles of a text's lines."""
    return pack("".join(_LETTER[role] for role in roles))


def unpack_roles(packed: bytes) -> tuple[Role, ...]:
    """Return what ``pack_roles`` compressed."""
    return tuple(_ROLE[letter] for letter in unpack_text(packed))


def storable_variant(variant: Variant) -> Variant:
    """Return a variant as it comes back from the store: signed again, it has to have the same signature."""
    return Variant(
        tuple(storable(t) for t in variant.chain),
        storable(variant.root_type),
        storable(variant.root_message),
        tuple(Frame(storable(f.function), storable(f.module), f.in_project) for f in variant.frames),
    )


def crash_row(analysis: Analysis, mtime: datetime, clean: Callable[[str], str], host_key: Callable[[str], str]) -> Json:
    """Return the columns of a crash that come from its analysis; ids and night are the writer's.

    What is said in the record itself goes over what its place says; without a stamp the source's time stands in.
    """
    record, root, parsed = analysis.record, analysis.root, analysis.parsed
    facts = parsed.facts.over(record.facts)
    at = (record.at or mtime).astimezone(UTC)
    return {
        "offset": record.offset,
        "end": record.end,
        "at": at,
        "day": at.date(),
        "at_inferred": record.at is None,
        "release": fact(facts.release, clean),
        "platform": fact(facts.platform, clean),
        "host_key": host_key(facts.host) if facts.host else None,
        "model": fact(facts.model, clean),
        "path": fact(facts.path, clean),
        "phase": facts.phase or root.phase or Phase.UNKNOWN.value,
        "attempt_id": _attempt(facts.attempt_id, clean, host_key) if facts.attempt_id else None,
        "process_key": host_key(f"process:{writer}") if (writer := _writer(record, root.line)) else None,
        "unit": parsed.unit,
        "outcome": parsed.outcome,
        "format": parsed.format,
        "signal": parsed.signal,
        "exit_code": parsed.exit_code,
        "root_rule": root.rule,
        "cue_class": root.failure_class,
        "truncated": record.truncated,
        "redactions": analysis.redactions,
    }


def _attempt(attempt_id: str, clean: Callable[[str], str], keyed: Callable[[str], str]) -> str:
    """Return an attempt's id, hashed where redaction would change it: two ids must never become one."""
    return attempt_id if clean(attempt_id) == attempt_id else f"id-{keyed(f'attempt:{attempt_id}')}"


def _writer(record: Record, line: int) -> str | None:
    """Return the process that died, else who wrote the root line, else the first who is known."""
    if victim := victim_of(record.text):
        return victim
    own = record.marks[line].writer if line < len(record.marks) else None
    return own or next((mark.writer for mark in record.marks if mark.writer), None)


def variant_row(key: str, analysis: Analysis) -> Json:
    """Return the row of an analysis's variant."""
    variant = analysis.variant
    return {
        "key": key,
        "signature_id": analysis.signature.id,
        "chain": [storable(t) for t in variant.chain],
        "root_type": storable(variant.root_type),
        "root_message": storable(variant.root_message),
        "frames": [[storable(f.function), storable(f.module), f.in_project] for f in variant.frames],
    }


def signature_row(analysis: Analysis) -> Json:
    """Return the row of an analysis's signature; when it was seen is the writer's."""
    signature = analysis.signature
    return {
        "id": signature.id,
        "algorithm": keying().id,
        "text": storable(signature.text),
        "tree": tree_json(signature.tree),
        "root_type": storable(analysis.root.type),
        "root_message": storable(_part(signature.tree, "message") or analysis.root.message),
        "cue_class": analysis.root.failure_class,
        "cluster_id": None,
        "is_exemplar": False,
    }


def _part(tree: Part, name: str) -> str | None:
    return next((part.value for part in tree.parts if part.name == name), None)
