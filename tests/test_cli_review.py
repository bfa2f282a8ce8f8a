"""``crashpath review`` and ``crashpath policy``: real nights, real attempts, a verdict and its exit code."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, update

from crashpath.dashboard.cli import run
from crashpath.dashboard.nightly import NightOptions
from crashpath.dashboard.testing import a_night
from crashpath.ingest.feed import FeedOptions
from crashpath.ingest.nights import start_night
from crashpath.ingest.store import open_store
from crashpath.ingest.tables import Cluster

DAY = date(2026, 2, 1)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB"
TOKENS = "ValueError: tokenizer.json: vocabulary has 30522 entries, model expects 30500"
FACTS = FeedOptions(patterns=("{release}/{platform}/*.log",))
Look = Callable[..., tuple[int, dict[str, Any]]]


class Fleet:
    """A store, the logs that nights read, and the attempts that were told."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder}/store.db"
        self.rows: list[str] = []
        self._log = 0

    def fail(self, count: int, what: str = OOM, release: str = "2.0", platform: str = "linux", day: date = DAY) -> None:
        """Let so many loads fail, each by a process of its own; 0 is a log without a failure."""
        place = self.folder / "logs" / release / platform
        place.mkdir(parents=True, exist_ok=True)
        self._log += 1
        facts = {"timestamp": f"{day}T10:00:00Z", "level": "error", "phase": "load", "msg": what}
        lines = [facts | {"attempt_id": f"a{self._log}-{i}"} for i in range(count)]
        quiet = facts | {"level": "info", "msg": "ready"}
        (place / f"{self._log}.log").write_text("".join(f"{json.dumps(line)}\n" for line in (quiet, *lines)))

    def tell(self, attempts: int, release: str = "2.0", platform: str = "linux", day: date = DAY) -> None:
        """Tell of attempts to deploy."""
        self.rows.append(f"deployment,{day},{release},{platform},{attempts}\n")

    def night(self) -> None:
        """Read all logs and all attempts."""
        with open_store(self.url) as store:
            a_night(store, [self.folder / "logs"], NightOptions(feed=FACTS))
        if self.rows:
            file = self.folder / "attempts.csv"
            file.write_text("unit,day,release,platform,attempts\n" + "".join(self.rows))
            assert run(["attempts", str(file), "--db", self.url]) == 0


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """A fleet in an empty working folder."""
    monkeypatch.chdir(tmp_path)
    return Fleet(tmp_path)


@pytest.fixture
def look(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> Look:
    """Review release 2.0: exit code and document."""

    def one(*arguments: str, release: str = "2.0") -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run(["review", "--release", release, "--db", fleet.url, "--json", *arguments])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    return one


def sentences(document: dict[str, Any]) -> str:
    """All reasons, a line each."""
    return "\n".join(f"{one['rule']}: {one['sentence']}" for one in document["reasons"])


def policy(folder: Path, text: str) -> None:
    """Write the policy of the working folder."""
    (folder / "policy.toml").write_text(text)


def test_a_clean_release_with_enough_attempts_is_a_go(fleet: Fleet, look: Look) -> None:
    """Exit 0, no reason, every rule met, the exact interval."""
    fleet.fail(0)
    fleet.tell(2000)
    fleet.night()
    code, told = look()
    assert (code, told["verdict"], told["reasons"], told["attempts_needed"]) == (0, "GO", [], None)
    assert told["rates"]["unanswered"]["failures"] == 0
    assert told["rates"]["unanswered"]["high"] == pytest.approx(1 - 0.025 ** (1 / 2000))
    assert all(one["met"] for one in told["thresholds"])


def test_a_bad_release_is_a_no_go_that_names_what_fails(fleet: Fleet, look: Look) -> None:
    """Exit 1; the rate is above the limit, and it stands beside it."""
    fleet.fail(120)
    fleet.tell(1000)
    fleet.night()
    code, told = look()
    assert (code, told["verdict"]) == (1, "NO-GO")
    assert told["reasons"][0]["rule"] == "limits.unanswered"
    assert "120 of 1,000 deployments (12.0 %) were not answered; allowed is at most 1.09 %" in sentences(told)
    (row,) = [one for one in told["units"][0]["classes"] if one["class"]]
    assert (row["class"], row["failures"], row["share"]) == ("oom_device", 120, 1.0)


def test_too_few_attempts_are_a_hold_that_says_how_many_more(fleet: Fleet, look: Look) -> None:
    """Exit 3; with as many more as it says, it is a GO."""
    fleet.fail(0)
    fleet.tell(100)
    fleet.night()
    code, told = look()
    assert (code, told["verdict"]) == (3, "HOLD")
    needed = told["attempts_needed"]
    assert needed > 174  # one look of exact intervals would need 274 in all
    fleet.tell(needed, day=DAY + timedelta(days=1))
    fleet.night()
    assert look()[0] == 0


@pytest.mark.parametrize("case", ["nothing", "zero", "more", "day", "missing", "future", "three"])
def test_what_cannot_be_judged_is_a_hold_and_says_why(fleet: Fleet, look: Look, case: str) -> None:
    """Never a GO, never a NO-GO, and one sentence that a person can act on."""
    future = datetime.now(UTC).date() + timedelta(days=40)
    fleet.fail(0)
    fleet.fail(0, platform="k8s")
    wanted = {
        "nothing": "No attempts of release 2.0 are told.",
        "zero": "0 deployments of release 2.0 are told: nothing was tried, so nothing is shown.",
        "more": "30 of 20 deployments failed, more than were tried: attempts are missing.",
        "day": "No attempts of release 2.0 are told; 5 attempts failed, on no denominator.",
        "missing": "The store knows nothing of release 9.9. It knows 2.0.",
        "future": "5,000 attempts and 0 failures are dated after",
        "three": "0 of 3 deployments (0 %) of k8s / unknown were not answered; not shown yet",
    }[case]
    if case == "zero":
        fleet.tell(0)
    if case == "more":
        fleet.fail(30)
        fleet.tell(20)
    if case == "day":
        fleet.fail(5)
    if case == "future":
        fleet.tell(2000)
        fleet.tell(5000, day=future)
    if case == "three":
        fleet.tell(5000)
        fleet.tell(3, platform="k8s")
    fleet.night()
    code, told = look(release="9.9" if case == "missing" else "2.0")
    assert (code, told["verdict"]) == (3, "HOLD")
    assert wanted in sentences(told)
    assert all(one["verdict"] == "HOLD" for one in told["reasons"])


def test_a_cohort_that_nobody_was_heard_from_is_a_hold(fleet: Fleet, look: Look) -> None:
    """Without a log source there are no failures to count, which is not the same as none."""
    fleet.fail(0)
    fleet.tell(5000)
    fleet.tell(5000, platform="android")
    fleet.night()
    code, told = look()
    assert code == 3
    assert "No log source was heard from android / unknown: of 5,000 attempts nobody knows" in sentences(told)
    (row,) = [one for one in told["units"][0]["cohorts"] if one["platform"] == "android"]
    assert row["problem"] == "no log source of it was heard"
    policy(fleet.folder, '[evidence]\nunheard = "note"\n')
    code, told = look()
    assert code == 0
    assert any("android" in note for note in told["notes"])


def test_a_day_with_failures_and_no_attempts_is_shown(fleet: Fleet, look: Look) -> None:
    """It stands among the days without a rate, and apart from the rates of the release."""
    fleet.fail(7, day=DAY + timedelta(days=1))
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    code, told = look()
    assert told["rates"]["primary"]["failures"] == 0
    day = told["units"][0]["days"][1]
    assert (day["attempts"], day["primary"]["failures"], day["primary"]["rate"]) == (None, 7, None)
    assert told["apart"] == [
        {"failures": 7, "sentence": "7 attempts failed of 2026-02-02, of which no deployments were told."}
    ]
    assert code == 0  # even with these seven the rate is shown to be under the limit


@pytest.mark.parametrize(("name", "expected"), [("v2.0", 3), ("Release-2.0", 3), ("2_0", 3), ("20", 0), ("3.1", 0)])
def test_failures_of_a_release_that_nobody_tried_are_told(fleet: Fleet, look: Look, name: str, expected: int) -> None:
    """Where the name may be this release's, written otherwise, they hold it; else they are a note."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.fail(90, release=name)
    fleet.night()
    code, told = look()
    assert code == expected
    assert ("which may be 2.0" in sentences(told)) == (expected == 3)
    assert f"90 attempts failed of releases of which no attempts are told: {name}." in "\n".join(told["notes"])


def test_a_night_that_could_not_read_a_log_is_a_hold(fleet: Fleet, look: Look) -> None:
    """A damaged archive may be full of failures: what was read beside it vouches for nothing of it."""
    fleet.fail(0)
    fleet.tell(3000)
    lines = "".join(f"{n} torch.OutOfMemoryError: CUDA out of memory\n" for n in range(900))
    (fleet.folder / "logs" / "damaged.log.gz").write_bytes(gzip.compress(lines.encode())[:40])
    fleet.night()
    code, told = look()
    assert code == 3
    assert "The last night was partial" in sentences(told)


def test_a_night_that_failed_or_is_running_is_a_hold(fleet: Fleet, look: Look) -> None:
    """What it did not read is not counted."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    assert look()[0] == 0
    with open_store(fleet.url) as store, store.write() as session:
        start_night(session, versions={}, now=datetime.now(UTC))
    code, told = look()
    assert code == 3
    assert "A night is running since" in sentences(told)


def test_failures_of_a_cohort_without_attempts_are_a_hold(fleet: Fleet, look: Look) -> None:
    """They are counted, and their denominator is missing."""
    fleet.fail(6, platform="android")
    fleet.fail(0)
    fleet.tell(9000)
    fleet.night()
    code, told = look()
    assert code == 3
    assert "6 failed deployments name android / unknown, of which no deployments are told." in sentences(told)


def test_a_regression_names_its_class_and_its_cluster(fleet: Fleet, look: Look) -> None:
    """Against a baseline: rates side by side, the class is the subject, the cluster its evidence."""
    for release, oom, tokens in (("1.0", 20, 6), ("2.0", 20, 60)):
        fleet.fail(oom, release=release)
        fleet.fail(tokens, TOKENS, release=release)
        fleet.tell(6000, release=release)
    fleet.night()
    code, told = look("--baseline", "1.0")
    assert code == 1
    found = {one["subject"]: one for one in told["reasons"] if one["rule"] == "classes.regressed_ratio"}
    assert set(found) == {"tokenizer"}
    assert found["tokenizer"]["command"].startswith("crashpath show C-")
    primary = told["rates"]["primary"]
    assert (primary["failures"], primary["baseline"]["failures"]) == (80, 26)
    assert primary["ratio"]["value"] == pytest.approx(80 / 26)
    moved = {(one["change"], one["level"], one["key"]) for one in told["movements"]}
    assert ("regressed", "class", "tokenizer") in moved
    assert ("regressed", "class", "oom_device") not in moved


@pytest.mark.parametrize("given", ["none", "unknown", "untold"])
def test_a_baseline_that_says_nothing_is_a_hold(fleet: Fleet, look: Look, given: str) -> None:
    """Required and not named, not known, or known without attempts."""
    fleet.fail(0)
    fleet.fail(3, release="1.0")
    fleet.tell(3000)
    fleet.night()
    policy(fleet.folder, "[baseline]\nrequired = true\n")
    code, told = look(*{"none": (), "unknown": ("--baseline", "0.1"), "untold": ("--baseline", "1.0")}[given])
    assert code == 3
    assert {
        "none": "The policy asks for a baseline, and none was named.",
        "unknown": "The store knows nothing of baseline 0.1. It knows 1.0, 2.0.",
        "untold": "No deployments of the baseline 1.0 are told: there is nothing to compare with.",
    }[given] in sentences(told)
    assert told["attempts_needed"] is None  # no number of them would mend it


@pytest.mark.parametrize(("failures", "expected"), [(9, 1), (2, 0)])
def test_a_cluster_that_was_resolved_and_is_seen_again(fleet: Fleet, look: Look, failures: int, expected: int) -> None:
    """Often enough it is a NO-GO that names the cluster; seldom it is a note."""
    fleet.fail(20, release="1.0")
    fleet.fail(0, release="2.0")
    fleet.fail(failures, day=DAY + timedelta(days=3))
    fleet.tell(5000, release="1.0")
    fleet.tell(5000)
    fleet.tell(5000, day=DAY + timedelta(days=3))
    fleet.night()
    assert look()[0] == 0
    with open_store(fleet.url) as store, store.write() as session:
        session.execute(update(Cluster).values(resolved_in="1.0"))
    code, told = look()
    assert code == expected
    said = f"was resolved in 1.0 and is seen: {failures} deployments failed with it."
    assert said in (sentences(told) if expected else "\n".join(told["notes"]))


def test_looks_are_counted_where_something_changed(fleet: Fleet, look: Look) -> None:
    """The same evidence asked twice is one look; more attempts are another, and the first stands beside it."""
    fleet.fail(1)
    fleet.tell(100)
    fleet.night()
    assert look()[1]["looks"] == 1
    assert look()[1]["looks"] == 1
    fleet.tell(50, day=DAY + timedelta(days=1))
    fleet.night()
    _, told = look()
    assert told["looks"] == 2
    assert [(one["number"], one["verdict"], one["failures"], one["attempts"]) for one in told["earlier"]] == [
        (1, "HOLD", 1, 100)
    ]


def test_a_person_may_decide_and_is_named_for_ever(fleet: Fleet, look: Look) -> None:
    """It holds for the reasons that were there, ends with a reason more, and stays on the report when undone."""
    fleet.fail(40)
    fleet.tell(1000)
    fleet.night()
    assert look()[0] == 1
    code, told = look("--override", "GO", "--who", "kim", "--why", "only the laboratory fails")
    assert (code, told["verdict"], told["outcome"]) == (0, "NO-GO", "GO")
    (word,) = told["overrides"]
    assert (word["who"], word["why"], word["holds"]) == ("kim", "only the laboratory fails", True)
    assert look()[0] == 0
    fleet.tell(1000, day=DAY + timedelta(days=1))
    fleet.fail(300, day=DAY + timedelta(days=1))
    fleet.night()
    code, told = look()
    assert (code, told["overrides"][0]["holds"]) == (1, False)
    assert run(["undo", str(word["decision"]), "--who", "noor", "--db", fleet.url]) == 0
    code, told = look()
    assert (code, [one["undone"] for one in told["overrides"]]) == (1, [True])


def test_a_word_does_not_cover_failures_of_which_no_attempts_are_told_yet(fleet: Fleet, look: Look) -> None:
    """The logs of a day come before its attempts: what failed meanwhile was tried at least that often."""
    fleet.fail(40)
    fleet.tell(1000)
    fleet.night()
    assert look("--override", "GO", "--who", "kim", "--why", "only the laboratory fails")[0] == 0
    fleet.fail(60)
    fleet.night()
    code, told = look()
    assert (code, told["outcome"], told["overrides"][0]["holds"]) == (1, "NO-GO", False)


def test_a_word_does_not_cover_what_was_corrected_to_far_more(fleet: Fleet, look: Look) -> None:
    """Attempts that were told wrongly: there is no "since", so all of it stands against what was known."""
    fleet.fail(200)
    fleet.tell(10_000)
    fleet.night()
    assert look("--override", "GO", "--who", "kim", "--why", "only the laboratory fails")[0] == 0
    fleet.rows.clear()
    fleet.tell(9_999)
    fleet.fail(500)
    fleet.night()
    assert look()[0] == 1


def test_a_stricter_word_outlasts_a_milder_one_that_lapsed(fleet: Fleet, look: Look) -> None:
    """NO-GO by one, GO by another; what ends the second brings back the first."""
    fleet.fail(0)
    fleet.tell(100)
    fleet.night()
    assert look("--override", "NO-GO", "--who", "kim", "--why", "stop")[0] == 1
    assert look("--override", "GO", "--who", "noor", "--why", "go")[0] == 0
    fleet.tell(100, platform="android")
    fleet.night()
    code, told = look()
    assert (code, [one["holds"] for one in told["overrides"]]) == (1, [True, False])


def test_a_word_over_some_cohorts_covers_no_others(fleet: Fleet, look: Look) -> None:
    """Two cohorts that nobody was heard from are not two others, though there are as many."""
    fleet.fail(0)
    fleet.tell(3000)
    for platform in ("bsd", "mac"):
        fleet.tell(3000, platform=platform)
    fleet.night()
    assert look("--override", "GO", "--who", "kim", "--why", "both are in the laboratory")[0] == 0
    fleet.rows.clear()
    fleet.tell(3000, platform="android")
    fleet.tell(3000, platform="windows")
    for platform in ("bsd", "mac"):
        fleet.tell(0, platform=platform)
    fleet.night()
    code, told = look()
    assert (code, told["overrides"][0]["holds"]) == (3, False)
    (unheard,) = (one for one in told["reasons"] if one["rule"] == "evidence.unheard")
    assert unheard["subject"] == "2 cohorts"


def test_a_report_with_nowhere_to_go_keeps_no_word(fleet: Fleet, look: Look) -> None:
    """The folder is not there: nothing was decided, and the same command decides once it is."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    word = ("--override", "HOLD", "--who", "kim", "--why", "wait", "--html", "reports/page.html")
    assert look(*word)[0] == 4
    assert look()[1]["overrides"] == []
    (fleet.folder / "reports").mkdir()
    assert look(*word)[0] == 3
    assert (fleet.folder / "reports" / "page.html").stat().st_size > 1000


def test_a_report_never_takes_the_place_of_the_store(fleet: Fleet, look: Look) -> None:
    """Links are followed; a database that was named by mistake stays."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    store = make_url(fleet.url).database
    assert store is not None
    (fleet.folder / "link.html").symlink_to("page.html")
    assert look("--html", store)[0] == 4
    assert look("--html", "link.html")[0] == 0
    assert (fleet.folder / "link.html").is_symlink()
    assert (fleet.folder / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    "streams", [">/dev/full 2>/dev/full", ">&- 2>&-", ">/dev/full", ">&-", "2>/dev/full", "| true"]
)
def test_a_stream_that_cannot_be_written_is_no_verdict(fleet: Fleet, look: Look, streams: str) -> None:
    """Whatever cannot be told: the code is that of the verdict or of a failure, and never that of a NO-GO."""
    fleet.fail(0)
    fleet.tell(100)
    fleet.night()
    assert look()[0] == 3
    ask = f"{sys.executable} -m crashpath.dashboard.cli review --release 2.0 --db {fleet.url}"
    done = subprocess.run(["bash", "-c", f"{ask} {streams}; exit ${{PIPESTATUS[0]}}"], check=False)
    assert done.returncode in ((3,) if streams == "2>/dev/full" else (3, 4) if streams == "| true" else (4,))


def test_a_word_that_the_evidence_agrees_with_is_no_override(
    fleet: Fleet, look: Look, capsys: pytest.CaptureFixture[str]
) -> None:
    """GO said over a HOLD stands beside a GO later, and the report does not say that it put one for the other."""
    fleet.fail(0)
    fleet.tell(100)
    fleet.night()
    assert look("--override", "GO", "--who", "kim", "--why", "the laboratory waits")[0] == 0
    fleet.tell(3000, day=DAY + timedelta(days=1))
    fleet.night()
    capsys.readouterr()
    assert run(["review", "--release", "2.0", "--db", fleet.url]) == 0
    assert capsys.readouterr().out.startswith("GO, and by the word of kim, which changes nothing: the laboratory waits")


def test_a_rule_that_asks_for_nothing_to_be_shown_is_not_called_met(
    fleet: Fleet, look: Look, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five failures of a new class in 1,000 are above 0.2 % and show no breach: the report says just that."""
    fleet.fail(0, release="1.0")
    fleet.fail(5)
    fleet.tell(1000)
    fleet.tell(1000, release="1.0")
    fleet.night()
    _, told = look("--baseline", "1.0")
    rules = {one["rule"]: one for one in told["thresholds"]}
    new = rules["classes.new_rate (deployment)"]
    assert (new["met"], new["guard"], rules["limits.unanswered (deployment)"]["guard"]) == (True, True, False)
    capsys.readouterr()
    run(["review", "--release", "2.0", "--baseline", "1.0", "--db", fleet.url])
    assert "no breach shown  classes.new_rate" in capsys.readouterr().out


def test_a_person_may_be_stricter_than_the_evidence(fleet: Fleet, look: Look) -> None:
    """A GO overridden to NO-GO is exit 1, however the evidence grows."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    assert look("--override", "no-go", "--who", "kim", "--why", "the licence is not cleared")[0] == 1
    fleet.tell(3000, day=DAY + timedelta(days=1))
    fleet.night()
    assert look()[0] == 1


def test_every_form_has_the_same_figures(fleet: Fleet, look: Look, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal, JSON, page and Markdown of one review."""
    fleet.fail(37)
    fleet.tell(1234)
    fleet.night()
    arguments = ["review", "--release", "2.0", "--db", fleet.url]
    assert run([*arguments, "--html", "review.html"]) == 1
    terminal = capsys.readouterr().out
    assert run([*arguments, "--markdown", "-"]) == 1
    markdown = capsys.readouterr().out
    assert run([*arguments, "--markdown", "review.md", "--json"]) == 1
    for text in (terminal, markdown, Path("review.html").read_text(), Path("review.md").read_text()):
        assert "37 of 1,234" in text
        assert "3.00 %" in text
        assert "NO-GO" in text
    assert max(map(len, terminal.splitlines())) <= 80


def test_the_policy_is_the_one_that_is_named(
    fleet: Fleet, look: Look, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Option, setting, working folder, defaults: in this order, and the report says which."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    assert look()[1]["policy"].startswith("the defaults")
    policy(fleet.folder, "alpha = 0.04\n")
    assert (look()[1]["policy"], look()[1]["alpha"]) == ("policy.toml", 0.04)
    (fleet.folder / "team.toml").write_text("alpha = 0.03\n")
    monkeypatch.setenv("CRASHPATH_POLICY", "team.toml")
    assert look()[1]["alpha"] == 0.03
    assert look("--policy", "policy.toml")[1]["alpha"] == 0.04
    capsys.readouterr()
    assert run(["policy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"]["alpha"] == 0.03


def test_the_default_policy_is_printed_and_can_be_used(
    fleet: Fleet, look: Look, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `crashpath policy` prints has the values that hold without it."""
    fleet.fail(0)
    fleet.tell(3000)
    fleet.night()
    capsys.readouterr()
    assert run(["policy"]) == 0
    text = capsys.readouterr().out
    assert run(["policy", "--json"]) == 0
    defaults = json.loads(capsys.readouterr().out)["policy"]
    policy(fleet.folder, text)
    assert run(["policy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["policy"] == defaults
    assert run(["policy", "--policy", "policy.toml"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--release", " "), 2, "--release is empty"),
        (("--release", "unknown"), 2, "nobody can review that"),
        (("--release", "2.0", "--baseline", "2.0"), 2, "Release and baseline are both 2.0"),
        (("--release", "2.0", "--unit", "boat"), 2, "--unit boat is none of deployment, load, request"),
        (("--release", "2.0", "--as-of", "soon"), 2, "--as-of soon is no time"),
        (("--release", "2.0", "--policy", "none.toml"), 2, "none.toml cannot be read"),
        (("--release", "2.0", "--policy", "bad.toml"), 2, "there is no key limits.unasnwered"),
        (("--release", "2.0", "--policy", "text.toml"), 2, "is no TOML"),
        (("--release", "2.0", "--override", "GO", "--who", "kim"), 2, "needs a name and a reason"),
        (("--release", "2.0", "--override", "GO", "--why", "so"), 2, "needs a name and a reason"),
        (("--release", "2.0", "--override", "GO", "--who", "\u200b", "--why", "so"), 2, "no name that anybody"),
        (("--release", "2.0", "--override", "maybe", "--who", "kim", "--why", "so"), 2, "is none of GO, NO-GO, HOLD"),
        (("--release", "2.0", "--why", "so"), 2, "--why is the reason of an --override"),
        (("--release", "2.0", "--json", "--markdown", "-"), 2, "both want standard output"),
        (("--release", "2.0", "--html", "no/such/place.html"), 4, "There is no folder no/such"),
        (("--release", "2.0", "--as-of", "9999-12-31"), 2, "--as-of 9999-12-31 is no time"),
        (("--release", "2.0", "--as-of", "0001-01-01"), 2, "--as-of 0001-01-01 is no time"),
        (("--release", "2.0", "--as-of", ""), 2, "is no time"),
        (("--release", "kim@x.example", "--baseline", "lee@y.example"), 2, "Release and baseline are both"),
        (("--release", "2.0", "--policy", "types.toml"), 2, "limits.unanswered is '0.5'"),
        (("--release", "2.0", "--policy", "."), 2, "cannot be read"),
        (("--release", "2.0", "--db", "postgresql://[::1/x"), 4, "is not a database URL"),
        (("--release", "2.0", "--db", "sqlite:///none.db"), 4, "There is no store at"),
        (("--release", "2.0", "--db", "sqlite:///bad.toml"), 4, "crashpath"),
        ((), 2, "--release"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_never_a_no_go(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], arguments: Sequence[str], code: int, said: str
) -> None:
    """The store holds a release that is a NO-GO; no slip on the way to that is exit 1."""
    fleet.fail(40)
    fleet.tell(200)
    fleet.night()
    (fleet.folder / "bad.toml").write_text("[limits]\nunasnwered = 0.1\n")
    (fleet.folder / "text.toml").write_text("limits: 3\n")
    (fleet.folder / "types.toml").write_text("[limits]\nunanswered = '0.5'\n")
    capsys.readouterr()
    db = () if "--db" in arguments else ("--db", fleet.url)
    assert run(["review", *arguments, *db]) == code
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_look_that_cannot_be_kept_still_gives_its_verdict(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody keeps the store locked: that the look was not kept is said; an override that was not is no override."""
    fleet.fail(40)
    fleet.tell(200)
    fleet.night()
    monkeypatch.setattr("crashpath.ingest.store.BUSY_MS", 200)
    arguments = ["review", "--release", "2.0", "--db", fleet.url, "--json"]
    assert run(arguments) == 1
    with open_store(fleet.url) as store, store.write() as session:  # something changed: what comes is another look
        session.execute(update(Cluster).values(label="renamed"))
    capsys.readouterr()
    with closing(sqlite3.connect(fleet.folder / "store.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert run(arguments) == 1
        out, err = capsys.readouterr()
        assert json.loads(out)["verdict"] == "NO-GO"
        assert (json.loads(out)["looks"], len(json.loads(out)["earlier"])) == (2, 1)
        assert any("This look could not be kept" in note for note in json.loads(out)["notes"])
        assert "This look could not be kept" in err
        assert run([*arguments, "--override", "GO", "--who", "kim", "--why", "so"]) == 4
        assert capsys.readouterr().out == ""
    assert run(arguments) == 1
    assert json.loads(capsys.readouterr().out)["overrides"] == []
