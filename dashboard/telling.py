"""Tell people what a night brought: keep what was noticed, write the digest's file, post to the webhook.

The night is over and stays as it is, whatever becomes of this: what did not go out is a problem that the night's output
names, and waits for the next night.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from crashpath.dashboard.digest import write_digest
from crashpath.dashboard.errors import InputError
from crashpath.dashboard.marks import rules_of
from crashpath.dashboard.message import Form, document, news
from crashpath.dashboard.noticed import Noticed, Rules, notice
from crashpath.dashboard.plurals import many
from crashpath.dashboard.settings import Settings
from crashpath.dashboard.summary import NightSummary
from crashpath.dashboard.webhook import Answer, Fate, post
from crashpath.ingest import outbox
from crashpath.ingest.store import Store


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where and how a message is posted: at most ``most`` lines, not again within ``every`` seconds."""

    address: str = field(repr=False)
    form: Form = "json"
    most: int = 20
    every: float = 60.0
    timeout: float = 10.0

    def place(self, store: Store) -> str:
        """Return what the store knows the address by: its keyed hash."""
        return store.key(f"webhook {self.address}")


@dataclass(frozen=True, slots=True)
class Telling:
    """What is told, and where. With neither file nor webhook nothing is looked for."""

    rules: Rules = field(default_factory=Rules)
    digest: Path | None = None
    webhook: Webhook | None = None


def telling_of(settings: Settings, digest: Path | None) -> Telling:
    """Return what settings say."""
    rules = rules_of(settings)
    if settings.webhook is None:
        return Telling(rules, digest)
    address = settings.webhook.get_secret_value()
    hook = Webhook(
        address, settings.webhook_form, settings.webhook_most, settings.webhook_every, settings.webhook_timeout
    )
    return Telling(rules, digest, hook)


def tell_night(
    store: Store, summary: NightSummary, telling: Telling, *, at: datetime, clock: Callable[[], datetime]
) -> NightSummary:
    """Tell of a night that is over; return its summary with what went wrong in telling among the problems.

    ``at`` is the night's time, ``clock`` the real one, for the time between two messages.

    Raises:
        InputError: the digest's file cannot be written. What it was to tell waits for the next one.
        StoreError: the store cannot be used.
    """
    if telling.webhook is not None:
        place = telling.webhook.place(store)
        noticed = _remember(store, summary.night, place, telling.rules, at)
        problems = _post(store, summary, telling.webhook, place, noticed.muted, clock)
        summary = replace(summary, problems=(*summary.problems, *problems))
    if telling.digest is not None:
        _write(store, summary, telling.digest, _remember(store, summary.night, outbox.FILE, telling.rules, at), clock)
    return summary


def _remember(store: Store, night: int, place: str, rules: Rules, at: datetime) -> Noticed:
    """Look for what is new to a place and keep it, so that it is told even if this process ends here."""
    with store.read() as session:
        since, told = outbox.noticed_until(session, place), outbox.known(session, place)
        noticed = notice(session, night, rules, at=at, since=since, told=told)
    with store.write() as session:
        outbox.keep(session, place, noticed.things, silent=noticed.silent, night=night, now=at)
    return noticed


def _post(
    store: Store, summary: NightSummary, hook: Webhook, place: str, muted: int, clock: Callable[[], datetime]
) -> list[str]:
    now = clock()
    with store.read() as session:
        lost = outbox.uncertain(session, place, before=now - timedelta(seconds=2 * hook.timeout))
    problems = [_lost(lost)] if lost else []
    with store.write() as session:
        claimed = outbox.claim(session, place, now=now, every=hook.every)
        left = outbox.waiting(session, place) if claimed is None else 0
    if claimed is None:
        if left:
            problems.append(
                f"{many(left, 'thing')} for the webhook waits for the next night: the last message was less than "
                f"{hook.every:g} s ago."
            )
        return problems
    told = news(claimed.things, hook.most, night=summary.night, status=summary.status, muted=muted)
    answer = post(hook.address, document(told, hook.form), hook.timeout)
    if answer.fate is not Fate.PERHAPS:  # else it stays claimed, and nobody sends it again
        with store.write() as session:
            outbox.settle(session, claimed, told=answer.fate is Fate.TOLD, now=clock())
    return problems + ([] if answer.fate is Fate.TOLD else [_sentence(answer, len(claimed.ids))])


def _sentence(answer: Answer, things: int) -> str:
    if answer.fate is Fate.NOT_TOLD:
        waits = f"{many(things, 'thing')} to tell {'waits' if things == 1 else 'wait'} for the next night"
        return f"The webhook did not take the digest ({answer.why}): {waits}. The night itself is as it was."
    return (
        f"The webhook was sent {many(things, 'thing')} and did not say that it took them ({answer.why}): perhaps they "
        "were told, and they are not sent again. `crashpath clusters` lists what there is."
    )


def _lost(things: int) -> str:
    return (
        f"{many(things, 'thing')} of an earlier night may not have reached the webhook, as its process ended or got no "
        "answer, and will not be sent again. `crashpath clusters` lists what there is."
    )


def _write(store: Store, summary: NightSummary, file: Path, noticed: Noticed, clock: Callable[[], datetime]) -> None:
    """Write the file with all that no file told yet. A file that was written and not marked tells it once more."""
    with store.write() as session:
        claimed = outbox.claim(session, outbox.FILE, now=clock(), again=True)
    things = () if claimed is None else claimed.things
    try:
        write_digest(summary, file, things, muted=noticed.muted)
    except InputError:
        _settle(store, claimed, told=False, now=clock())
        raise
    _settle(store, claimed, told=True, now=clock())


def _settle(store: Store, claimed: outbox.Claim | None, *, told: bool, now: datetime) -> None:
    if claimed is not None:
        with store.write() as session:
            outbox.settle(session, claimed, told=told, now=now)
