"""The replay of the account, small: what is generated is known to the line, and what is counted is what was drawn."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
ATTEMPTS, LOGS = 3_000, 400


@pytest.fixture(scope="module", autouse=True)
def _benchmarks() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        yield


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_account_is_not_moved_and_every_other_seed_is() -> None:
    """Seed 0 has the account's figures; the rates of others lie within a third of them, and their shares sum to 1."""
    from replay_truth import RATE_AFTER, RATE_BEFORE, THREE_AFTER, THREE_BEFORE, THREE_LARGEST, truth_of

    plain = truth_of(0)
    assert (plain.before.rate, plain.after.rate) == (RATE_BEFORE, RATE_AFTER)
    assert dict(plain.before.shares) == pytest.approx(THREE_BEFORE)
    assert {name: plain.after.shares[name] for name in THREE_AFTER} == pytest.approx(THREE_AFTER)
    assert sum(sorted(plain.logs.values())[-3:]) == pytest.approx(THREE_LARGEST)
    rates = set()
    for seed in range(1, 40):
        moved = truth_of(seed)
        assert moved == truth_of(seed)
        rates.add(moved.before.rate)
        for one, was in ((moved.before, plain.before), (moved.after, plain.after)):
            assert was.rate * 2 / 3 <= one.rate <= was.rate * 4 / 3
            assert sum(one.shares.values()) == pytest.approx(1)
            for name, share in was.shares.items():  # each moved by up to a third, then all brought to a sum of 1
                assert share / 2 <= one.shares[name] <= share * 2
    assert len(rates) == 39


def test_the_planted_release_differs_in_one_class() -> None:
    """Every class fails as often as after the repair, but one three times as often."""
    from replay_truth import PLANTED, truth_of

    truth = truth_of(5)
    for name, share in truth.after.shares.items():
        times = 3 if name == PLANTED else 1
        assert truth.planted.rate * truth.planted.shares[name] == pytest.approx(times * truth.after.rate * share)


def test_what_is_generated_is_decided_by_the_seed(tmp_path: Path) -> None:
    """The same seed gives the same bytes, another one others; each line is a failed attempt of the truth."""
    from replay_make import make
    from replay_truth import truth_of

    for name, seed in (("one", 3), ("again", 3), ("other", 4)):
        make(truth_of(seed), tmp_path / name, 1_000, 60)
    assert _files(tmp_path / "one") == _files(tmp_path / "again")
    assert _files(tmp_path / "one") != _files(tmp_path / "other")
    place = tmp_path / "one" / "deployments"
    drawn = json.loads((place / "truth.json").read_text(encoding="utf-8"))["releases"]
    with (place / "truth.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    failed = {row["attempt"]: (row["file"].split("/")[1], row["class"]) for row in rows}
    assert Counter(failed.values()) == Counter(
        {(release, name): count for release, one in drawn.items() for name, count in one["failed"].items()}
    )
    assert len(rows) > len(failed)  # retries, and kills of which the kernel tells as well
    for row in rows[:50]:
        line = (place / row["file"]).read_bytes()[int(row["offset"]) :].splitlines()[0]
        assert row["attempt"] in line.decode() or row["role"] == "kernel"
    header = json.loads((place / "header.json").read_text(encoding="utf-8"))
    assert header["what"].startswith("generated")
    assert header["seed"] == 3


def test_rows_hold_what_lies_inside() -> None:
    """An interval holds its ends; a table in which too few hold is called out, one that chance explains is not."""
    from replay_compare import Row, exact, few_hold

    assert Row("x", 0.10, 0.1, 0.12, 0.10, 0.14).holds
    assert not Row("x", 0.0999, 0.1, 0.12, 0.10, 0.14).holds
    assert exact(0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))
    inside, outside = Row("x", 0.5, 0.5, 0.5, 0.4, 0.6), Row("x", 0.7, 0.5, 0.5, 0.4, 0.6)
    assert not few_hold([inside] * 19 + [outside])
    assert few_hold([inside] * 12 + [outside] * 8)


def test_simultaneous_rows_are_one_event() -> None:
    """However many of them miss, they are one interval that misses; and however many hold, they excuse no other."""
    from replay_compare import Row, few_hold, plain

    inside, outside = Row("x", 0.5, 0.5, 0.5, 0.4, 0.6), Row("x", 0.7, 0.5, 0.5, 0.4, 0.6)
    held, missed = (Row(one.name, one.truth, 0.5, 0.5, 0.4, 0.6, simultaneous=True) for one in (inside, outside))
    assert not few_hold([inside] * 2 + [missed] * 14)
    assert few_hold([outside] * 2 + [held] * 13 + [missed])
    assert few_hold([outside] * 4 + [held] * 100)
    assert [one["simultaneous"] for one in plain([inside, held])] == [False, True]


def test_the_limit_is_that_of_the_policy(tmp_path: Path) -> None:
    """What is printed as the limit is what the reviews are held to."""
    from replay_report import limit_of

    policy = tmp_path / "policy.toml"
    policy.write_text("[limits.deployment]\nunanswered = 0.25\n", encoding="utf-8")
    assert limit_of(policy) == 0.25


def test_one_seed_replaces_no_results() -> None:
    """The account's figures and those of several seeds are kept, each in its own file; one moved seed is not."""
    from replay import kept_as

    assert kept_as(0, 0) == "replay"
    assert kept_as(0, 5) == "replay_seeds"
    assert kept_as(3, 0) is None


def test_stores_and_logs_of_other_code_go(tmp_path: Path) -> None:
    """A store goes with its journals; logs stay under their own header, and go under another one or under none."""
    from replay import remove_store
    from replay_make import write_crash_logs
    from replay_truth import truth_of

    truth = truth_of(0)
    write_crash_logs(tmp_path, truth, 30)
    whole = _files(tmp_path)
    stray = tmp_path / "logs" / "another-release" / "k8s" / "2026-01-01.jsonl"
    for name in ("crashpath.db", "crashpath.db-wal", "crashpath.db-shm"):
        (tmp_path / name).write_bytes(b"of another day")
    remove_store(tmp_path)
    assert _files(tmp_path) == whole
    for header in (whole["header.json"].replace(b'"generator": "', b'"generator": "0'), None):
        stray.parent.mkdir(parents=True)
        stray.write_bytes(b"{}\n")
        write_crash_logs(tmp_path, truth, 30)
        assert stray.exists()
        (tmp_path / "header.json").unlink()
        if header is not None:
            (tmp_path / "header.json").write_bytes(header)
        write_crash_logs(tmp_path, truth, 30)
        assert _files(tmp_path) == whole


def test_a_review_is_held_to_what_it_has_to_say() -> None:
    """The verdict, a NO-GO that names the class, and a HOLD that says how many attempts more."""
    from replay import judge

    reason = {"verdict": "NO-GO", "subject": "device_init", "sentence": "It is worse."}
    worse = {"verdict": "NO-GO", "reasons": [reason], "attempts_needed": None}
    assert judge("x", worse, ("NO-GO",), names="device_init").right
    assert not judge("x", worse, ("NO-GO",), names="tokenizer").right
    assert not judge("x", worse, ("GO", "HOLD")).right
    hold = {"verdict": "HOLD", "reasons": [], "attempts_needed": 0}
    assert not judge("x", hold, ("HOLD",), needed=True).right
    assert judge("x", hold | {"attempts_needed": 9}, ("HOLD",), needed=True).right


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory, _benchmarks: Any) -> Any:
    """One small replay, of rates that were moved, where an earlier one left stores that nothing can read."""
    from replay import replay

    out = tmp_path_factory.mktemp("replay")
    for name in ("deployments", "planted", "hundredth", "crash-logs"):
        store = out / f"seed-2-{ATTEMPTS}-{LOGS}" / name / "crashpath.db"
        store.parent.mkdir(parents=True)
        store.write_bytes(b"no database" * 100)
    return replay(2, out, ATTEMPTS, LOGS)


def test_what_is_counted_is_what_was_drawn(replayed: Any) -> None:
    """Each failed deployment counts once, whatever told of it; rates are those drawn, and their intervals hold them."""
    found, drawn = replayed.counted
    assert found == drawn > 300
    for row in replayed.deployments[:2]:
        assert row.found == pytest.approx(row.drawn)
        assert row.low < row.drawn < row.high
    fewer = replayed.deployments[2]
    assert fewer.found == pytest.approx(fewer.drawn)
    assert fewer.low < fewer.drawn < fewer.high
    assert replayed.before == replayed.truth.before.largest()
    deployments = replayed.readings["deployments"]
    assert deployments.lines > deployments.crashes > 0 < deployments.retries
    assert deployments.failed == drawn
    for one in replayed.readings.values():
        assert one.share > 0.95


def test_the_crash_logs_have_the_classes_that_were_drawn(replayed: Any) -> None:
    """Every log is a crash, and the largest classes come out with the shares that were drawn."""
    assert replayed.readings["crash-logs"].crashes == LOGS
    assert replayed.largest_logs[0] == "shape_inference"
    for row in replayed.logs[:2]:
        assert abs(row.found - row.drawn) < 0.03


def test_thirty_attempts_are_a_hold(replayed: Any) -> None:
    """The review of the whole blames nobody, and that of a hundredth of it knows too little."""
    whole, _, hundredth, _ = replayed.judged
    assert whole.verdict in ("GO", "HOLD")
    assert hundredth.verdict == "HOLD"


def test_the_default_policy_is_told_and_never_red(replayed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Its verdict is printed and kept beside the others, and right whatever it is."""
    from replay_report import document, print_replay

    *_, default = replayed.judged
    assert default.only_told
    assert default.right
    assert [one.only_told for one in replayed.judged] == [False, False, False, True]
    print_replay(replayed)
    assert f"{default.name}: {default.reason[:30]}" in " ".join(capsys.readouterr().out.split())
    assert document(replayed)["verdicts"][-1]["data"] == default.name
