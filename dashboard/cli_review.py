"""``crashpath review``: GO, NO-GO or HOLD for a release, and why; ``crashpath policy``: the rules it goes by."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from crashpath.dashboard.errors import InputError, UsageError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.faces import DbOption, JsonOption, complain, console, emit
from crashpath.dashboard.moment import as_of_time
from crashpath.dashboard.policy import Policy, Unit, default_text, policy_in_force
from crashpath.dashboard.review_model import Review, Verdict
from crashpath.dashboard.review_word import Word, word_of
from crashpath.dashboard.settings import load_settings
from crashpath.dashboard.who import WhyOption
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.storable import clean, fact
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.store_errors import StoreError

CODES = {Verdict.GO: Exit.DONE, Verdict.NO_GO: Exit.NO_GO, Verdict.HOLD: Exit.HOLD}
_STDOUT = "-"

PolicyOption = Annotated[
    Path | None,
    typer.Option("--policy", metavar="FILE", help="Default: the setting policy, else policy.toml here, else defaults."),
]
WhoOption = Annotated[str | None, typer.Option("--who", envvar="CRASHPATH_WHO", help="With --override: who decides.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(review)
    app.command()(policy)


def review(
    release: str = typer.Option(..., "--release", metavar="R", help="The release that may go out, or not."),
    baseline: str | None = typer.Option(None, "--baseline", metavar="B", help="The release that it is set against."),
    policy: PolicyOption = None,
    unit: str | None = typer.Option(None, "--unit", help="Whose figures come first: deployment, load or request."),
    as_of: str | None = typer.Option(None, metavar="TIME", help="Take this as now (ISO 8601); for replays."),
    html: Path | None = typer.Option(None, "--html", metavar="FILE", help="Write the report as one page."),
    markdown: str | None = typer.Option(
        None, "--markdown", metavar="FILE", help="Write it for a pull request; - prints that alone."
    ),
    override: str | None = typer.Option(
        None, "--override", metavar="VERDICT", help="Decide GO, NO-GO or HOLD yourself; needs --who and --why."
    ),
    who: WhoOption = None,
    why: WhyOption = None,
    db: DbOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say whether a release may go out, why, and what is still needed.

    Exit 0: GO. 1: NO-GO. 3: HOLD. An override that holds decides, and is shown for ever.
    """
    if as_json and markdown == _STDOUT:
        raise UsageError("--json and --markdown - both want standard output: give --markdown a file.")
    settings = load_settings(db=db)
    names, first = _names(release, baseline), _unit(unit)
    rules, source = policy_in_force(policy, settings.policy)
    at = datetime.now(UTC) if as_of is None else as_of_time(as_of, settings.tz)
    word = _word(override, who, why)
    _can_be_written(html, markdown)
    with open_store(settings.db, create=False) as store:
        made = _made(store, names, rules, source, first, at, word)
    _print(made, as_json, markdown == _STDOUT)
    _write(made, html, None if markdown == _STDOUT else markdown)
    return CODES[made.outcome]


def policy(file: PolicyOption = None, as_json: JsonOption = False) -> int:
    """Print the rules of a review with their defaults, commented; with --policy FILE check that file.

    --json prints the rules in force, and where they come from.
    """
    if not as_json and file is None:
        sys.stdout.write(default_text())
        return Exit.DONE
    rules, source = policy_in_force(file, load_settings().policy)
    if as_json:
        emit({"source": source, "policy": rules.model_dump(mode="json")})
    else:
        console().print(f"{source} can be used.", markup=False, soft_wrap=True)
    return Exit.DONE


def _names(release: str, baseline: str | None) -> tuple[str, str | None]:
    for flag, name in (("--release", release), ("--baseline", baseline)):
        if name is not None and not name.strip():
            raise UsageError(f"{flag} is empty: name a release. crashpath attempts lists those with attempts.")
        if name is not None and name.strip() == UNKNOWN:
            raise UsageError(f"{flag} {UNKNOWN} stands for what names no release, and nobody can review that.")
    named, before = fact(release, clean), None if baseline is None else fact(baseline, clean)  # as the store has them
    if named == before:
        raise UsageError(f"Release and baseline are both {named}: name the release before it as --baseline.")
    return named, before


def _unit(given: str | None) -> str | None:
    known: tuple[str, ...] = Unit.__args__  # type: ignore[attr-defined]  # of a Literal
    if given is not None and given not in known:
        raise UsageError(f"--unit {given} is none of {', '.join(known)}.")
    return given


def _word(override: str | None, who: str | None, why: str | None) -> Word | None:
    """Return the verdict that a person puts in the place of this one, who, and why."""
    if override is None:
        if why is not None:
            raise UsageError("--why is the reason of an --override: say which verdict, as in --override GO.")
        return None
    try:
        verdict = Verdict(override.upper().replace("NOGO", Verdict.NO_GO))
    except ValueError as error:
        raise UsageError(f"--override {override} is none of {', '.join(Verdict)}.") from error
    if not (who or "").strip() or not (why or "").strip():
        raise UsageError("An override needs a name and a reason: --who NAME --why TEXT. Both are shown for ever.")
    return word_of(verdict, who, why)


def _made(
    store: Store,
    names: tuple[str, str | None],
    rules: Policy,
    source: str,
    unit: str | None,
    at: datetime,
    word: Word | None,
) -> Review:
    """Review, and keep the look; a store that cannot be written to is said, and the verdict stands all the same."""
    from crashpath.dashboard.review import review_release  # statistics: most of a second to import
    from crashpath.dashboard.review_looks import keep, with_looks
    from crashpath.ingest.reviews import looks

    made = review_release(store, *names, rules, policy_name=source, unit=unit, at=at)
    try:
        with store.write() as session:
            return keep(session, made, rules, word, datetime.now(UTC))
    except StoreError as error:
        if word is not None:
            raise
        note = f"This look could not be kept: {error}"
        complain(note)
        with store.read() as session:
            made = replace(made, looks=len(looks(session, made.release)) + 1, notes=(*made.notes, note))
            return with_looks(session, made)


def _print(made: Review, as_json: bool, as_markdown: bool) -> None:
    if as_json:
        from crashpath.dashboard.review_json import document

        emit(document(made))
    elif as_markdown:
        from crashpath.dashboard.review_markdown import markdown

        sys.stdout.write(markdown(made))
    else:
        from crashpath.dashboard.review_text import print_review

        print_review(made, console())


def _can_be_written(html: Path | None, markdown: str | None) -> None:
    """Refuse a report that has nowhere to go before a look or an override is kept."""
    for target in (html, None if markdown in (None, _STDOUT) else Path(markdown)):
        if target is not None and not target.resolve().parent.is_dir():
            raise InputError(f"There is no folder {target.parent} to write {target.name} to. Make it first.")


def _write(made: Review, html: Path | None, markdown: str | None) -> None:
    from crashpath.coverage.wholefile import write_whole
    from crashpath.dashboard.review_files import html_bytes, markdown_bytes

    wanted = ((html, html_bytes), (None if markdown is None else Path(markdown), markdown_bytes))
    for target, in_bytes in wanted:
        if target is None:
            continue
        try:
            write_whole(target, in_bytes(made))
        except OSError as error:
            told = f"{shlex.quote(str(target))} cannot be written: {error.strerror}. The verdict is {made.outcome}."
            raise InputError(told) from error
