"""The digest of real nights: its file, what goes to a real webhook, and that nothing is told twice or lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from crashpath.dashboard import cli
from crashpath.dashboard.digest import digest
from crashpath.dashboard.errors import InputError
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.summary import NightSummary
from crashpath.dashboard.telling import Telling, Webhook, tell_night
from crashpath.dashboard.testing import a_night
from crashpath.dashboard.testing_hook import Hook, hook_server
from crashpath.ingest import outbox
from crashpath.ingest.nights import finish_night, start_night
from crashpath.ingest.outbox import Thing
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Cluster
from crashpath.ingest.tables_counts import Told

TRACE = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 8, in load
    {line}
{error}
"""
ERRORS = (
    (
        "with open(path) as file:",
        "FileNotFoundError: [Errno 2] No such file or directory: '/opt/models/bert/vocab.json'",
    ),
    ("return a + b", "ValueError: operands could not be broadcast together with shapes (3,4) (5,)"),
    ("import fast_ops", "ModuleNotFoundError: No module named 'fast_ops'"),
)


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A server that answers."""
    with hook_server() as server:
        yield server


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of logs with two failures; the third of ``ERRORS`` is for a later night."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for n in (0, 1):
        add(folder, n)
    return folder


def add(folder: Path, n: int) -> None:
    """Add a log with one of the errors."""
    line, error = ERRORS[n]
    (folder / f"{n}.log").write_text(TRACE.format(line=line, error=error))


def now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)


def hooked(hook: Hook, **values: object) -> Telling:
    """Return a telling to this server, which may be told again at once."""
    return Telling(webhook=replace(Webhook(hook.address, every=0.0, timeout=30.0), **values))  # type: ignore[arg-type]  # fields


def night_and_tell(store: Store, logs: Path, telling: Telling, clock: Callable[[], datetime] = now) -> NightSummary:
    """Run a night and tell of it."""
    return tell_night(store, a_night(store, [logs]), telling, at=now(), clock=clock)


def told(hook: Hook) -> list[str]:
    """Return the subjects of all things that were posted, in order."""
    return [one["subject"] for post in hook.posts for one in post["things"]]


def states(store: Store) -> dict[str, int]:
    """Return how many things are in each state, marks left out."""
    with store.read() as session:
        found = list(session.scalars(select(Told.state).where(Told.kind != outbox.BEGUN)))
    return {state: found.count(state) for state in sorted(set(found))}


def test_each_thing_is_told_once(any_store: Store, hook: Hook, logs: Path) -> None:
    """The same night again tells nothing, and no empty message; what is new after it is told alone."""
    telling = hooked(hook)
    assert night_and_tell(any_store, logs, telling).problems == ()
    assert sorted(told(hook)) == ["C-0001", "C-0002"]
    night_and_tell(any_store, logs, telling)
    assert len(hook.posts) == 1
    add(logs, 2)
    night_and_tell(any_store, logs, telling)
    assert told(hook)[2:] == ["C-0003"]
    assert states(any_store) == {"told": 3}


@pytest.mark.parametrize("status", [500, 302])
def test_what_was_not_taken_waits_for_the_next_night(any_store: Store, hook: Hook, logs: Path, status: int) -> None:
    """A refusal leaves the night complete, says so in one sentence, and is made good by the next night, once."""
    telling = hooked(hook)
    hook.status = status
    summary = night_and_tell(any_store, logs, telling)
    assert summary.status == "complete"
    assert len(summary.problems) == 1
    assert f"HTTP status {status}" in summary.problems[0]
    assert "2 things to tell wait for the next night" in summary.problems[0]
    assert states(any_store) == {"waiting": 2}
    hook.status = 200
    assert night_and_tell(any_store, logs, telling).problems == ()
    night_and_tell(any_store, logs, telling)
    assert [len(post["things"]) for post in hook.posts] == [2, 2]  # the first was refused


def test_a_server_that_is_down_and_then_up(store: Store, logs: Path) -> None:
    """Nobody there: all waits. When somebody is, all is told that came in between."""
    with hook_server() as gone:
        telling = hooked(gone)
    assert "did not take the digest" in night_and_tell(store, logs, telling).problems[0]
    add(logs, 2)
    assert "3 things" in night_and_tell(store, logs, telling).problems[0]
    with hook_server() as hook:
        # The same address, as the store knows it, with somebody behind it now.
        place = telling.webhook.place(store)  # type: ignore[union-attr]  # it has one
        with store.write() as session:
            claimed = outbox.claim(session, place, now=now())
            assert claimed is not None
            outbox.settle(session, claimed, told=False, now=now())
            for row in session.scalars(select(Told)):
                row.place = hooked(hook).webhook.place(store)  # type: ignore[union-attr]  # it has one
        night_and_tell(store, logs, hooked(hook))
        assert sorted(told(hook)) == ["C-0001", "C-0002", "C-0003"]


def test_no_answer_is_perhaps_told_and_never_sent_again(any_store: Store, hook: Hook, logs: Path) -> None:
    """A server that takes the message and says nothing in time may have told: the night says so, the next is silent."""
    hook.delay = 600
    summary = night_and_tell(any_store, logs, hooked(hook, timeout=1.0))
    assert summary.status == "complete"
    assert "perhaps they were told" in summary.problems[0]
    assert states(any_store) == {"sending": 2}
    hook.delay = 0
    later = night_and_tell(any_store, logs, hooked(hook), lambda: now() + timedelta(hours=1))
    assert "2 things of an earlier night may not have reached the webhook" in later.problems[0]
    add(logs, 2)
    night_and_tell(any_store, logs, hooked(hook))
    assert told(hook) == ["C-0001", "C-0002", "C-0003"]
    # Once a later message came through, nothing is said of the earlier one any more.
    assert night_and_tell(any_store, logs, hooked(hook), lambda: now() + timedelta(hours=1)).problems == ()


KILLED = """
import sys
from datetime import UTC, datetime
from crashpath.dashboard.telling import Telling, Webhook, tell_night
from crashpath.dashboard.testing import a_night
from crashpath.ingest.store import open_store
url, address, logs = sys.argv[1:]
now = lambda: datetime.now(UTC)
with open_store(url) as store:
    telling = Telling(webhook=Webhook(address, every=0.0, timeout=600.0))
    tell_night(store, a_night(store, [logs]), telling, at=now(), clock=now)
"""


def test_killed_while_it_posts(store_url: str, hook: Hook, logs: Path) -> None:
    """A night that is killed between its claim and the answer: its things are not sent again, what is new is."""
    hook.delay = 600
    process = subprocess.Popen([sys.executable, "-c", KILLED, store_url, hook.address, str(logs)])
    try:
        deadline = time.monotonic() + 120
        while not hook.posts and time.monotonic() < deadline:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    hook.delay = 0
    with open_store(store_url) as store:
        assert states(store) == {"sending": 2}
        add(logs, 2)
        summary = night_and_tell(store, logs, hooked(hook), lambda: now() + timedelta(hours=1))
        assert summary.status == "complete"
        assert "may not have reached" in summary.problems[0]
        assert told(hook) == ["C-0001", "C-0002", "C-0003"]
        assert states(store) == {"sending": 2, "told": 1}


def test_killed_before_it_claims(store: Store, hook: Hook, logs: Path) -> None:
    """A night that ended before anything was kept, or before anything was claimed: the next one tells all of it."""
    a_night(store, [logs])  # it ends here, and nobody looked
    add(logs, 2)
    summary = a_night(store, [logs])
    place = hooked(hook).webhook.place(store)  # type: ignore[union-attr]  # it has one
    with store.write() as session:
        outbox.keep(session, place, [Thing("new", "C-0003", "", 3, "w", "t")], night=summary.night, now=now())
    night_and_tell(store, logs, hooked(hook))
    assert told(hook) == ["C-0003"]


def test_a_place_remembers_where_it_stood(store: Store, hook: Hook, logs: Path) -> None:
    """Nights without this webhook between two with it: what they brought is told, once."""
    night_and_tell(store, logs, hooked(hook))
    add(logs, 2)
    a_night(store, [logs])
    a_night(store, [logs])
    night_and_tell(store, logs, hooked(hook))
    assert told(hook) == ["C-0001", "C-0002", "C-0003"]


def test_two_nights_at_once_claim_each_thing_once(any_store: Store) -> None:
    """Of many that claim at the same moment, each thing is one's alone."""
    with any_store.write() as session:
        night = start_night(session, versions={}, now=now())
        finish_night(session, night, "complete", counts={}, seconds={}, now=now())
    things = [Thing("new", f"C-{n:04d}", "", None, "w", "t") for n in range(200)]

    def keep_and_claim(part: int) -> Sequence[Thing]:
        with any_store.write() as session:
            outbox.keep(session, "p", things[part * 20 : part * 20 + 40], night=night, now=now())
        with any_store.write() as session:
            claimed = outbox.claim(session, "p", now=now())
        return () if claimed is None else claimed.things

    with ThreadPoolExecutor(3) as pool:  # more of them may wait longer for each other than a store lets a writer wait
        parts = list(pool.map(keep_and_claim, range(10)))
    got = [one.key for part in parts for one in part]
    assert sorted(got) == sorted(one.key for one in things)


def test_messages_are_not_closer_than_they_may_be(any_store: Store, hook: Hook, logs: Path) -> None:
    """Within the time between two messages all waits, which the night says; afterwards it is told together."""
    telling = hooked(hook, every=3600.0)
    assert night_and_tell(any_store, logs, telling).problems == ()
    add(logs, 2)
    assert "1 thing for the webhook waits for the next night" in night_and_tell(any_store, logs, telling).problems[0]
    assert len(hook.posts) == 1
    night_and_tell(any_store, logs, telling, lambda: now() + timedelta(hours=2))
    assert told(hook) == ["C-0001", "C-0002", "C-0003"]


def many_clusters(store: Store, n: int) -> NightSummary:
    """Run a night in which so many clusters are born."""
    summary = a_night(store, [])
    with store.write() as session:
        night = start_night(session, versions={}, now=now())
        finish_night(session, night, "complete", counts={}, seconds={}, now=now())
        things = [Thing("new", f"C-{i:04d}", "", None, "OOM: 1 crash", f"root line {i}") for i in range(n)]
        for place in (outbox.FILE, WEBHOOK.place(store)):
            outbox.keep(session, place, things, night=night, now=now())
    return replace(summary, night=night)


WEBHOOK = Webhook("http://127.0.0.1:9/never", every=0.0)


def test_a_thousand_new_clusters_are_one_message(any_store: Store, hook: Hook, tmp_path: Path) -> None:
    """Most are counted, not listed, and never told one by one later; the file lists more and counts the rest."""
    summary = many_clusters(any_store, 1_000)
    with any_store.write() as session:
        for row in session.scalars(select(Told).where(Told.place == WEBHOOK.place(any_store))):
            row.place = hooked(hook).webhook.place(any_store)  # type: ignore[union-attr]  # it has one
    file = tmp_path / "digest.md"
    telling = replace(hooked(hook, most=20), digest=file)
    assert tell_night(any_store, summary, telling, at=now(), clock=now).problems == ()
    tell_night(any_store, summary, telling, at=now(), clock=now)
    assert [(len(post["things"]), post["more"]) for post in hook.posts] == [(20, {"new": 980})]
    assert states(any_store) == {"told": 2_000}
    assert "Nothing is new" in file.read_text()  # the second one


def test_the_file_says_what_is_new(store: Store, logs: Path, tmp_path: Path) -> None:
    """Figures first, then a section for each kind, each thing once; the next night's file is about that night."""
    file = tmp_path / "digest.md"
    telling = Telling(digest=file)
    night_and_tell(store, logs, telling)
    text = file.read_text()
    assert text.startswith("# Night 1: complete\n\n| headline | crashes | share |")
    assert "## New: 2" in text
    assert "**C\\-0001**" in text
    assert "broadcast" in text
    night_and_tell(store, logs, telling)
    assert "Nothing is new, regressed, back, spiking or fixed." in file.read_text()


def test_a_file_that_cannot_be_written_loses_nothing(store: Store, logs: Path, tmp_path: Path) -> None:
    """The error names the file; what it was to tell is in the next one."""
    night_and_tell(store, logs, Telling(digest=tmp_path / "first.md"))
    add(logs, 2)
    with pytest.raises(InputError, match=r"nowhere.*Name another place"):
        night_and_tell(store, logs, Telling(digest=tmp_path / "nowhere" / "digest.md"))
    night_and_tell(store, logs, Telling(digest=tmp_path / "digest.md"))
    assert "## New: 1" in (tmp_path / "digest.md").read_text()


HOSTILE = "![x](http://evil.example/p.png) <script>alert(1)</script> ``` ` **b** @team | # h\n\n- item \x1b[0m"


def test_text_of_logs_is_inert_in_markdown(store: Store) -> None:
    """Whatever a log or a release is called, a digest's line stays one line, and nothing in it is Markdown or HTML."""
    thing = Thing("regressed", "C-0001", "r", 1, f"seen in {HOSTILE}", HOSTILE)
    text = digest(replace(a_night(store, []), problems=(HOSTILE,)), [thing])
    lines = text.split("\n")
    line = next(one for one in lines if "C\\-0001" in one)
    words, _, title = line.partition(" ````")
    assert title.endswith("````")
    assert "````" not in title[:-4]
    for part in (words.removeprefix("- **").replace("**", "", 1), next(one for one in lines if "evil" in one)[2:]):
        plain = part.replace("\\\\", "")
        for sign in "<>[]()!`*@|#":
            assert plain.replace(f"\\{sign}", "").count(sign) == 0, (sign, part)
    assert "\x1b" not in text
    assert sum(one.startswith("#") for one in lines) == 2  # the night, and what regressed


def test_nothing_is_looked_for_where_nobody_is_told(store: Store, logs: Path) -> None:
    """Without file and webhook a night keeps nothing to tell."""
    night_and_tell(store, logs, Telling())
    with store.read() as session:
        assert session.scalars(select(Told)).all() == []
        assert session.scalars(select(Cluster)).all()


def test_the_command_tells_and_keeps_the_secret(
    hook: Hook, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`nightly` with a webhook that fails exits 0 with a warning, and again with one that works; the address is in
    nothing that is printed or stored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRASHPATH_WEBHOOK", hook.address)
    monkeypatch.setenv("CRASHPATH_WEBHOOK_FORM", "slack")
    hook.status = 503
    arguments = ["nightly", str(logs), "--db", f"sqlite:///{tmp_path}/crashpath.db", "--digest", "digest.md", "--json"]
    assert cli.run(arguments) == Exit.DONE
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["status"] == "complete"
    assert any("HTTP status 503" in one for one in document["problems"])
    assert "HTTP status 503" in err
    assert "HTTP status 503" in Path("digest.md").read_text()
    hook.status = 200
    assert cli.run(arguments) == Exit.DONE
    again, more = capsys.readouterr()
    assert json.loads(again)["problems"] == []
    assert [post["text"].count("*new*") for post in hook.posts] == [2, 2]
    printed = (out + err + again + more + Path("digest.md").read_text()).encode()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("crashpath.db*"))
    for secret in (b"s3cr3t-t0ken", f"127.0.0.1:{hook.port}".encode()):
        assert secret not in printed
        assert secret not in stored
