"""``crashpath rekey``: show, and with ``--apply`` write, what a new version of masks, signature or encoder changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import typer
from rich.text import Text

from crashpath.dashboard.engines import encoder
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, console, emit
from crashpath.dashboard.plurals import many
from crashpath.dashboard.rekeying import Looked, Written, look, write
from crashpath.dashboard.settings import load_settings
from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.keying import keying
from crashpath.ingest.rekey import Flow, Plan
from crashpath.ingest.store import open_store

MOST = 10
"""Changes of one kind that are printed; ``--json`` has all."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(rekey)


def rekey(
    db: DbOption = None,
    apply: bool = typer.Option(False, "--apply", help="Write it; a SQLite store is backed up beside itself first."),
    wait: float | None = typer.Option(None, metavar="SECONDS", help="Wait this long for a night that is running."),
    as_json: JsonOption = False,
) -> int:
    """Give stored failures the signatures of this version of crashpath. Shows what changes; --apply writes it."""
    settings = load_settings(db=db, lease_wait=wait)
    with open_store(settings.db, create=False) as store:
        served = encoder(settings.encoder)
        if not apply:
            looked, written = look(store, keying(), served), None
        else:
            written = write(
                store, keying(), served, clock=lambda: datetime.now(UTC), wait=settings.lease_wait, say=_say
            )  # fmt: skip
            looked = written.looked
    if as_json:
        emit(document(looked, written))
        return Exit.DONE
    for line in (*lines(looked), *_ending(looked, written)):
        console().print(Text(line), overflow="fold")
    return Exit.DONE


def _say(stage: str) -> None:
    sys.stderr.write(f"{stage} …\n")


def document(looked: Looked, written: Written | None) -> dict[str, Any]:
    """Return all of it as JSON."""
    made = looked.plan
    return {
        "applied": written is not None,
        "keying": {"old": dict(made.survey.algorithms), "new": made.survey.keying},
        "encoder": {"old": looked.tied, "new": looked.encoder},
        "signatures": {
            "before": made.survey.signatures, "stay": made.stay, "renamed": len(made.renamed),
            "put_together": len(_gathered(made)), "part": len(made.parted),
        },
        "renamed": [_renamed(one.made_of[0], one.cluster) for one in made.renamed],
        "together": [
            {
                "new": one.id, "crashes": one.crashes, "cluster": _shown(one.cluster),
                "from": [{"old": f.old, "crashes": f.crashes} for f in one.made_of],
                "left": [cluster_id(number) for number in one.left],
            }
            for one in made.together
        ],
        "parted": [
            {"old": old, "into": [{"new": f.new, "crashes": f.crashes} for f in flows]} for old, flows in _parts(made)
        ],
        "clusters": [cluster_id(number) for number in made.clusters],
        "ended": [{"cluster": cluster_id(one.cluster), "into": cluster_id(one.into)} for one in made.ended],
        "against": [{"apart": [one, other], "new": new} for one, other, new in made.against],
        "texts": len(looked.texts),
        "embedded": None if written is None else written.embedded,
        "backup": None if written is None or written.backup is None else str(written.backup),
    }  # fmt: skip


def _renamed(flow: Flow, cluster: int | None) -> dict[str, object]:
    return {"old": flow.old, "new": flow.new, "crashes": flow.crashes, "cluster": _shown(cluster)}


def _shown(number: int | None) -> str | None:
    return None if number is None else cluster_id(number)


def _gathered(made: Plan) -> set[str]:
    """Old signatures that become one with others."""
    return {flow.old for one in made.together for flow in one.made_of}


def _parts(made: Plan) -> list[tuple[str, list[Flow]]]:
    found: dict[str, list[Flow]] = {old: [] for old in made.parted}
    for flow in made.survey.flows:
        if flow.old in found:
            found[flow.old].append(flow)
    return [(old, sorted(flows, key=lambda f: (-f.crashes, f.new))) for old, flows in found.items()]


def lines(looked: Looked) -> Iterator[str]:
    """What changes, in lines of text."""
    made = looked.plan
    old = ", ".join(name for name, _ in made.survey.algorithms) or "nothing"
    yield f"keyed by {old} -> {made.survey.keying}"
    if looked.other_encoder:
        yield f"encoder {looked.tied} -> {looked.encoder}: all vectors are made anew, members stay where they are"
    yield f"{many(made.survey.signatures, 'signature')}: {made.stay:,} stay as they are"
    for number, what in (
        (len(made.renamed), "get another id or text, with the same crashes"),
        (len(_gathered(made)), f"are put together into {len(made.together):,}"),
        (len(made.parted), "part; their parts stay in the cluster"),
    ):
        if number:
            yield f"  {number:,} {what}"
    yield from _listed("other id or text", [f"{_count(f)} -> {f.new}" for one in made.renamed for f in one.made_of])
    yield from _listed(
        "put together", [line for one in made.together for line in _together(one.made_of, one.left, one.cluster)]
    )
    yield from _listed(
        "parted", [f"{old} -> " + ", ".join(f"{f.new} ({f.crashes:,})" for f in flows) for old, flows in _parts(made)]
    )
    if made.clusters:
        yield f"{many(len(made.clusters), 'cluster')} touched: " + _some([cluster_id(one) for one in made.clusters])
    for ended in made.ended:
        yield f"  {cluster_id(ended.cluster)} goes into {cluster_id(ended.into)}: none of its signatures is left to it"
    for one, other, new in made.against:
        yield f"  people told {one} and {other} apart, and both are {new} now: nobody can tell them apart any more"


def _count(flow: Flow) -> str:
    return f"{flow.old} ({many(flow.crashes, 'crash')})"


def _together(flows: tuple[Flow, ...], left: tuple[int, ...], cluster: int | None) -> Iterator[str]:
    where = "" if cluster is None else f" in {cluster_id(cluster)}"
    out_of = f", out of {', '.join(map(cluster_id, left))}, which had fewer of the crashes" if left else ""
    parts = " + ".join([*(_count(flow) for flow in flows[:4]), *(["…"] if len(flows) > 4 else [])])
    yield f"{parts} -> {flows[0].new}{where}{out_of}"


def _listed(title: str, found: list[str]) -> Iterator[str]:
    if found:
        yield f"{title}:"
        yield from (f"  {line}" for line in found[:MOST])
        if len(found) > MOST:
            yield f"  … and {len(found) - MOST:,} more (--json lists all)"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST:,} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more


def _ending(looked: Looked, written: Written | None) -> Iterator[str]:
    if not looked.changes:
        yield "Nothing changes: nights go on as they are."
    elif written is None:
        yield f"{many(len(looked.texts), 'text')} will need a vector, if they have none yet."
        yield "Nothing was written. crashpath rekey --apply writes it, after a backup of the file."
    else:
        kept = written.backup or "none (a server keeps its own)"
        yield f"Written; {many(written.embedded, 'text')} embedded. Backup: {kept}"
