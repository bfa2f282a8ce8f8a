"""Commands that say how a cluster stands: ``resolve``, ``mute``, ``ticket``, ``note``. ``undo`` takes them back."""

from __future__ import annotations

from typing import Annotated

import typer

from crashpath.dashboard import cautions
from crashpath.dashboard.decide_text import unchanged
from crashpath.dashboard.errors import UsageError
from crashpath.dashboard.faces import DbOption, JsonOption
from crashpath.dashboard.moment import moment_of
from crashpath.dashboard.taking import IdArgument, take_one
from crashpath.dashboard.who import LONGEST_NOTE, WhoOption, WhyOption, one_line
from crashpath.ingest import marking
from crashpath.ingest.clusters import cluster_id, cluster_number
from crashpath.ingest.said import LONGEST_LINK
from crashpath.ingest.web_address import checked


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (resolve, mute, ticket, note):
        app.command()(command)


def resolve(
    cluster: IdArgument,
    release: Annotated[
        str, typer.Option("--in", metavar="RELEASE", help="The release that has the fix. An empty one takes it away.")
    ],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say that a cluster is gone from a release on; seen in it or a later one, it is regressed."""
    number, wanted = cluster_number(cluster), one_line(release, "--in")
    return take_one(
        db, who, why, as_json, lambda session, by: marking.resolve(session, number, wanted, by),
        unchanged("resolve", cluster_id(number), wanted), lambda session, _: cautions.of_release(session, number),
    )  # fmt: skip


def mute(
    cluster: IdArgument,
    until: Annotated[
        str,
        typer.Option("--until", metavar="DAY", help="2026-01-31: from that UTC day on it is told of. Empty: from now."),
    ],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Leave a cluster out of what nights tell of, until a day. It is stored, counted and reviewed as ever."""
    number, day = cluster_number(cluster), until.strip()
    moment = moment_of(day, "UTC", "--until") if day else None
    return take_one(
        db, who, why, as_json, lambda session, by: marking.mute(session, number, moment, by),
        unchanged("mute", cluster_id(number), day),
    )  # fmt: skip


def ticket(
    cluster: IdArgument,
    address: Annotated[
        str, typer.Argument(metavar="URL", help="https://… or http://… An empty one takes the link away.")
    ],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Link a cluster to where it is followed up."""
    number, wanted = cluster_number(cluster), one_line(address, "URL", LONGEST_LINK)
    try:
        if wanted:
            checked(wanted)
    except ValueError as error:  # it does not repeat the address, which may hold a secret
        raise UsageError(f"URL cannot be kept: {error}.") from None
    return take_one(
        db, who, why, as_json, lambda session, by: marking.ticket(session, number, wanted, by),
        unchanged("ticket", cluster_id(number), wanted), lambda _, made: cautions.of_link(wanted, made.value),
    )  # fmt: skip


def note(
    cluster: IdArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What the next one should know.")],
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Write a note on a cluster."""
    number, wanted = cluster_number(cluster), one_line(text, "TEXT", LONGEST_NOTE)
    if not wanted:
        raise UsageError("note needs a TEXT that can be read.")
    return take_one(
        db, who, why, as_json, lambda session, by: marking.note(session, number, wanted, by),
        unchanged("note", cluster_id(number), wanted),
    )  # fmt: skip
