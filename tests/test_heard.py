"""Who was heard: every source that a night could look at tells of cohorts, also when it is quiet."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import event, select

from crashpath.dashboard.cli import run
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.nightly import NightOptions, run_night
from crashpath.dashboard.testing import light_clusterer
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.heard import HeardCohort, Hearing, heard
from crashpath.ingest.model import Facts
from crashpath.ingest.named import MOST_COHORTS
from crashpath.ingest.nights import NightSeen, last_night
from crashpath.ingest.storable import clean
from crashpath.ingest.store import Store, open_store
from crashpath.ingest.tables import Crash, Source
from crashpath.ingest.tables_counts import Heard

FIRST = datetime(2026, 2, 1, 3, tzinfo=UTC)
SECOND, THIRD = FIRST + timedelta(days=1), FIRST + timedelta(days=2)
LINE = "2026-02-01 10:00:00 ERROR [pid 7] loader: release=1.0 platform=k8s torch.OutOfMemoryError: no memory\n"
COUNTS = json.dumps(
    {
        "schema": "crashpath.event/1", "at": "2026-02-01T10:00:00Z", "event": "attempts", "unit": "request",
        "to": "2026-02-01T10:00:10Z", "attempts": 9, "failures": 0, "unanswered": 0, "rerouted": 0, "batch_id": "b1",
        "release": "1.1", "platform": "linux", "model": "bert",
    }
)  # fmt: skip


def night(store: Store, folder: Path, at: datetime, options: FeedOptions | None = None) -> None:
    """Run a night at some time."""
    options = options or FeedOptions(patterns=("{release}/{platform}/*.log",))
    run_night(store, [str(folder)], NightOptions(feed=options), light_clusterer(), clock=lambda: at)


def told(store: Store, *releases: str) -> dict[tuple[str, str, str], tuple[datetime, datetime, int]]:
    """Cohorts, and when they were heard by how many."""
    with store.read() as session:
        rows = heard(session, releases or ("1.0", "1.1", "2.0", "unknown"))
    return {(one.release, one.platform, one.model): (one.first_at, one.last_at, one.origins) for one in rows}


def write(path: Path, text: str) -> Path:
    """Write a file in its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_records_counts_paths_and_sidecars_tell_of_cohorts(any_store: Store, tmp_path: Path) -> None:
    """An empty file in a folder of a release is heard, so is a file whose sidecar names one; so are events."""
    logs = tmp_path / "logs"
    write(logs / "2.0" / "android" / "empty.log", "")
    write(logs / "a.txt", LINE)
    write(logs / "b.txt", "").with_name("b.txt.meta.json").write_text('{"release": "2.0", "model": "vit"}')
    write(logs / "events.jsonl", COUNTS + "\n")
    night(any_store, logs, FIRST)
    once = (FIRST, FIRST, 1)
    cohorts = told(any_store)
    assert cohorts.pop(("unknown", "unknown", "unknown"))[:2] == (FIRST, FIRST)
    assert cohorts == {
        ("1.0", "k8s", "unknown"): once, ("1.1", "linux", "bert"): once, ("2.0", "android", "unknown"): once,
        ("2.0", "unknown", "vit"): once,
    }  # fmt: skip
    with any_store.read() as session:
        assert heard(session, ["2.0"])[0] == HeardCohort("2.0", "android", "unknown", FIRST, FIRST, 1)
        assert heard(session, ["9.9"]) == ()


def test_a_quiet_source_that_is_still_looked_at_is_heard(any_store: Store, tmp_path: Path) -> None:
    """Unchanged, rewritten without a word of the cohort, or emptied; not one that is gone or cannot be read."""
    logs = tmp_path / "logs"
    files = [write(logs / f"{name}.txt", LINE.replace("k8s", name)) for name in ("same", "other", "none", "gone")]
    packed = write(logs / "torn.txt.gz", "")
    night(any_store, logs, FIRST)
    files[1].write_text("2026-02-02 10:00:00 ERROR loader: KeyError: 'x'\n")
    files[2].write_text("")
    files[3].unlink()
    packed.write_bytes(b"\x1f\x8b\x08broken")
    night(any_store, logs, SECOND)
    looked = {platform: last for (release, platform, _), (_, last, _) in told(any_store, "1.0").items()}
    assert looked == {"same": SECOND, "other": SECOND, "none": SECOND, "gone": FIRST}
    night(any_store, logs, THIRD)
    assert {first for first, _, _ in told(any_store, "1.0").values()} == {FIRST}
    with any_store.read() as session:
        torn = session.scalars(select(Heard.last_at).where(Heard.origin_key == any_store.key(str(packed)))).all()
        assert torn == [FIRST]
        seen = last_night(session)
    assert isinstance(seen, NightSeen)
    assert (seen.id, seen.status, seen.started_at, seen.finished_at) == (3, "partial", THIRD, THIRD)
    assert seen.reason is not None


def test_facts_are_cleaned_as_those_of_crashes(store: Store, tmp_path: Path) -> None:
    """A cohort has one name, with what is personal in it hidden, in crashes and here; a version stays as it is."""
    facts = Facts(release="1.2.3.4", platform="box of jane.doe@example.com", model="bert")
    write(tmp_path / "logs" / "a.txt", "2026-02-01 10:00:00 ERROR loader: KeyError: 'x'\n")
    night(store, tmp_path / "logs", FIRST, FeedOptions(facts=facts))
    with store.read() as session:
        (crash,) = session.execute(select(Crash.release, Crash.platform, Crash.model)).all()
        (cohort,) = heard(session, ["1.2.3.4"])
    assert (cohort.release, cohort.platform, cohort.model) == tuple(crash)
    assert "jane" not in cohort.platform


def test_standard_input_is_known_by_its_name(store: Store, tmp_path: Path) -> None:
    """A stream that once told of a cohort is heard as long as it comes."""
    url = store.engine.url.render_as_string()
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "nightly", "-", "--source", "app", "--db", url]
    for text, at in ((LINE, "2026-02-02"), ("", "2026-02-03"), ("all is well\n", "2026-02-04")):
        subprocess.run([*command, "--as-of", at], input=text.encode(), check=False, capture_output=True, timeout=120)
    (times,) = [when for cohort, when in told(store, "1.0").items() if cohort == ("1.0", "k8s", "unknown")]
    assert (times[0].day, times[1].day, times[2]) == (2, 4, 1)


def test_few_statements_for_many_sources(store: Store) -> None:
    """Writing what was heard takes statements by the thousand sources, not one a source; it is asked for each."""
    hearing = Hearing(clean, FIRST)
    for number in range(5_000):
        hearing.look(f"key-{number}", Facts(f"{number % 3}.0", "linux"))
        hearing.look(f"key-{number}", Facts("9"))
    statements: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    fences: list[int] = []
    hearing.write(store, fence=lambda session: fences.append(1))
    assert len([one for one in statements if "heard" in one]) < 30
    assert 0 < len(fences) < 30
    assert told(store, "1.0", "9") == {
        ("1.0", "linux", "unknown"): (FIRST, FIRST, 1667), ("9", "unknown", "unknown"): (FIRST, FIRST, 5_000),
    }  # fmt: skip


def test_no_night_yet(store: Store) -> None:
    """Nobody was heard, and there is no last night."""
    with store.read() as session:
        assert (heard(session, ["1.0"]), last_night(session)) == ((), None)


def test_a_night_that_is_killed_is_made_good_by_the_next(tmp_path: Path) -> None:
    """Killed at any time, the next night over the same files knows all that one night would have heard."""
    logs = tmp_path / "logs"
    well = "2026-02-01 10:00:01 INFO [pid 7] loader: all is well\n"
    write(logs / "-first.txt", said(release="2.0", platform="k8s") + (well * 40 + LINE) * 1_000)  # several checkpoints
    for number in range(60):
        write(logs / f"{number}.txt", LINE.replace("k8s", f"p{number}") * 20)
        counts = COUNTS.replace('"b1"', f'"b{number}"').replace("linux", f"p{number}")
        write(logs / f"{number}.jsonl", counts + "\n")
    url = f"sqlite:///{tmp_path}/store.db"
    command = [sys.executable, "-m", "crashpath.dashboard.testing", url, str(logs)]
    with open_store(url) as store:
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and child.poll() is None:
            with store.read() as session:
                if session.scalar(select(Source.id).where(Source.offset > 0).limit(1)) is not None:
                    break
            time.sleep(0.02)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        night(store, logs, FIRST)
        for release in ("1.0", "1.1"):
            assert {platform for _, platform, _ in told(store, release)} - {"k8s"} == {
                f"p{number}" for number in range(60)
            }
        assert told(store, "2.0").keys() == {("2.0", "k8s", "unknown")}


def said(**fields: object) -> str:
    """A JSON line of a program that is well, with a newline."""
    return json.dumps({"level": "info", "msg": "ready", "timestamp": "2026-02-01T10:00:00Z"} | fields) + "\n"


def test_lines_that_tell_of_no_failure_name_cohorts(any_store: Store, tmp_path: Path) -> None:
    """However they are wrapped, with a message or none; a line without a release names none."""
    inner = said(release="2.0", platform="k8s", model="vit")
    lines = [
        said(release="2.0", platform="linux", model="m") * 3,
        json.dumps({"log": inner, "stream": "stdout", "time": "2026-02-01T10:00:00Z"}) + "\n",
        'api-1  | {"status": 200, "release": "1.1", "labels": {"platform": "bsd"}}\n',
        said(platform="android", model="bert"),
        said(release="", platform="mac"),
        '{"msg": "cut off", "release": "1.0", "platf\n',
    ]
    write(tmp_path / "logs" / "a.log", "".join(lines))
    for at in (FIRST, SECOND):
        night(any_store, tmp_path / "logs", at, FeedOptions())
        cohorts = told(any_store)
        assert cohorts.pop(("unknown", "unknown", "unknown")) == (FIRST, at, 1)  # the source itself
        assert cohorts == {
            ("2.0", "linux", "m"): (FIRST, at, 1), ("2.0", "k8s", "vit"): (FIRST, at, 1),
            ("1.1", "bsd", "unknown"): (FIRST, at, 1),
        }  # fmt: skip


def test_the_place_of_a_source_fills_what_its_lines_leave_open(any_store: Store, tmp_path: Path) -> None:
    """As for crashes: a line's own word first, then the path, so both are counted for one cohort."""
    write(tmp_path / "logs" / "2.0" / "linux" / "a.log", said(model="m") + said(platform="k8s") + said(release="1.1"))
    night(any_store, tmp_path / "logs", FIRST)
    assert told(any_store).keys() == {
        ("2.0", "linux", "unknown"), ("2.0", "linux", "m"), ("2.0", "k8s", "unknown"), ("1.1", "linux", "unknown"),
    }  # fmt: skip


def test_what_a_line_names_is_cleaned(any_store: Store, tmp_path: Path) -> None:
    """What is personal is hidden, what no database takes is replaced, a version is no address."""
    write(
        tmp_path / "logs" / "a.log", said(release="1.2.3.4", platform="box of jane.doe@example.com", model="m\0\ud800")
    )
    night(any_store, tmp_path / "logs", FIRST)
    (cohort,) = told(any_store, "1.2.3.4")
    assert "jane" not in cohort[1]
    assert cohort[2].startswith("m")
    assert "\0" not in cohort[2]


def test_a_log_that_grows_is_heard_of_what_is_new(any_store: Store, tmp_path: Path) -> None:
    """The old cohort stays heard as its source is looked at, the new one is heard since its first line was read."""
    file = write(tmp_path / "logs" / "a.log", said(release="1.0", platform="linux") * 2_000)
    night(any_store, tmp_path / "logs", FIRST)
    with file.open("a") as log:
        log.write(said(release="2.0", platform="linux") * 10)
    night(any_store, tmp_path / "logs", SECOND)
    night(any_store, tmp_path / "logs", THIRD)
    assert told(any_store, "1.0", "2.0") == {
        ("1.0", "linux", "unknown"): (FIRST, THIRD, 1), ("2.0", "linux", "unknown"): (SECOND, THIRD, 1),
    }  # fmt: skip


def test_what_stood_before_the_damage_is_heard(store: Store, tmp_path: Path) -> None:
    """A packed log that ends early was read up to there."""
    text = "".join(said(release="2.0", platform="linux", note=os.urandom(30).hex()) for _ in range(3_000))
    path = tmp_path / "logs" / "a.log.gz"
    write(path, "").write_bytes(gzip.compress(text.encode())[:-20_000])
    night(store, tmp_path / "logs", FIRST, FeedOptions())
    assert told(store, "2.0") == {("2.0", "linux", "unknown"): (FIRST, FIRST, 1)}


def test_descriptions_and_endless_names_are_no_cohorts(any_store: Store, tmp_path: Path) -> None:
    """A long text under a name that means a model is none, and a field that never repeats fills no store."""
    lines = [said(release="2.0", model=os.urandom(4_000).hex())]
    lines += [said(model=f"m{number}") for number in range(MOST_COHORTS)]  # of no release
    lines += [said(release="2.0", model=f"m{number}") for number in range(MOST_COHORTS + 50)]
    write(tmp_path / "logs" / "a.log", "".join(lines))
    night(any_store, tmp_path / "logs", FIRST, FeedOptions())
    assert {model for _, _, model in told(any_store, "2.0")} == {f"m{number}" for number in range(MOST_COHORTS)}


def test_a_healthy_release_of_info_lines_alone_is_a_go(tmp_path: Path) -> None:
    """Its log names the cohort, so it is known that nothing failed; attempts of another platform stay unheard."""
    url = f"sqlite:///{tmp_path}/store.db"
    log = write(tmp_path / "app.log", said(release="2.0", platform="linux", model="m") * 100)
    counts = tmp_path / "attempts.csv"

    def verdict(*platforms: str) -> int:
        rows = [f"deployment,2026-02-01,2.0,{platform},m,5000\n" for platform in platforms]
        counts.write_text("unit,day,release,platform,model,attempts\n" + "".join(rows))
        assert run(["attempts", str(counts), "--db", url]) == Exit.DONE
        return run(["review", "--release", "2.0", "--as-of", "2026-02-02", "--db", url])

    assert run(["nightly", str(log), "--as-of", "2026-02-02", "--db", url]) == Exit.DONE
    assert verdict("linux") == Exit.DONE
    assert verdict("linux", "android") == Exit.HOLD
