"""Whether a store is keyed as this program keys, asked before a night writes to it."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from crashpath.ingest.keying import Keying
from crashpath.ingest.rekey import survey
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import OtherKeying
from crashpath.ingest.tables import Signature, Variant


def ensure_keyed(store: Store, keying: Keying) -> None:
    """Raise ``OtherKeying`` where stored variants would get other signatures; for whoever holds the night's lease.

    A night that went on would give a failure that is known a second signature, and tell of it as new. Where the way of
    keying is another one and changes nothing, the store is marked with it and the night goes on.
    """
    with store.read() as session:
        if not _otherwise(session, keying.id):
            return
        found = survey(session, keying)
    if found.changed:
        old = ", ".join(name for name, _ in found.algorithms if name != keying.id)
        changed = len({flow.old for flow in found.flows})
        raise OtherKeying(
            f"This store is keyed by {old}; under {keying.id}, {changed:,} of its {found.signatures:,} signatures "
            "would be others.",
            "See what changes with `crashpath rekey`, and write it with `crashpath rekey --apply`.",
        )
    with store.write() as session:
        relabel(session, keying.id)


def _otherwise(session: Session, keying: str) -> bool:
    """Whether a signature that has variants says that it is keyed in another way."""
    return session.scalar(select(Signature.id).where(Signature.algorithm != keying, _HAS_VARIANTS).limit(1)) is not None


def relabel(session: Session, keying: str) -> None:
    """Say of all signatures that have variants that they are keyed in this way."""
    session.execute(
        update(Signature).where(Signature.algorithm != keying, _HAS_VARIANTS).values(algorithm=keying),
        execution_options={"synchronize_session": False},
    )


_HAS_VARIANTS = select(Variant.id).where(Variant.signature_id == Signature.id).exists()
"""Of a signature whose variants are gone nobody can say another one."""
