"""Vectors by text and encoder: computed once, then read from the store; the first one stored wins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from crashpath.ingest.store_errors import OtherEncoder
from crashpath.ingest.tables import Embedding, Project

_CHUNK = 500


def tie_encoder(session: Session, encoder_id: str) -> None:
    """Tie the store to an encoder at its first use; raise ``OtherEncoder`` when it is tied to another one."""
    project = session.scalars(select(Project)).one()
    if project.encoder_id is None:
        project.encoder_id = encoder_id
    elif project.encoder_id != encoder_id:
        raise OtherEncoder(
            f"This store was clustered with the encoder {project.encoder_id}, and {encoder_id} gives other distances.",
            "Use the same encoder, or see with `crashpath rekey` what the other one would change.",
        )


def embeddings(session: Session, encoder_id: str, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vectors that are known, by text; each float32 ``(dim,)``."""
    by_hash = {text_hash(text): text for text in texts}
    out: dict[str, NDArray[np.float32]] = {}
    hashes = sorted(by_hash)
    for start in range(0, len(hashes), _CHUNK):
        chunk = hashes[start : start + _CHUNK]
        query = select(Embedding.text_hash, Embedding.vector)
        for key, vector in session.execute(
            query.where(Embedding.encoder_id == encoder_id, Embedding.text_hash.in_(chunk))
        ):
            out[by_hash[key]] = np.frombuffer(vector, dtype="<f4").astype(np.float32)
    return out


def save_embeddings(session: Session, encoder_id: str, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Store vectors by text. One that is there already stays: the first one wins."""
    rows = [
        {"encoder_id": encoder_id, "text_hash": text_hash(text), "vector": np.asarray(vector, dtype="<f4").tobytes()}
        for text, vector in vectors.items()
    ]
    dialect = postgresql if session.connection().dialect.name == "postgresql" else sqlite
    statement: Any = dialect.insert(Embedding)
    if rows:
        session.execute(statement.on_conflict_do_nothing(), rows)


def text_hash(text: str) -> str:
    """Hash an embedded text: 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
