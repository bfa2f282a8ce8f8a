"""Where a crash belongs: words, path pattern, sidecar, flags, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashpath.dashboard.cli import run
from crashpath.ingest.facts import (
    FactsError,
    facts_for_path,
    facts_in,
    from_pattern,
    make_facts,
    path_named,
    read_sidecar,
)
from crashpath.ingest.model import Facts, Record
from crashpath.ingest.read import RawLine
from crashpath.ingest.split import SplitOptions, one_record, split

PATTERN = "logs/{release}/{platform}/*.log"


def told_for(log: Path, patterns: list[str], flags: Facts) -> Facts:
    """What path, sidecar and flags tell of a log."""
    return facts_for_path(str(log), patterns, read_sidecar(str(log)).facts, flags)


@pytest.mark.parametrize("path", ["logs/1.4/arm/app.log", "/srv/logs/1.4/arm/app.log", "./logs/1.4/arm/app.log.gz"])
def test_a_path_pattern_fits_the_end_of_a_path(path: str) -> None:
    """Names in braces are one folder or part of a name each; packing does not matter."""
    assert from_pattern(path, [PATTERN]) == Facts(release="1.4", platform="arm")


def test_a_pattern_that_does_not_fit_tells_nothing() -> None:
    """A name in braces never spans folders, and the first pattern that fits is used."""
    assert from_pattern("logs/1.4/a/b/app.log", [PATTERN]) == Facts()
    assert from_pattern("x/r1-arm.log", [PATTERN, "{release}-{platform}.log"]) == Facts(release="r1", platform="arm")
    assert from_pattern("a/b/c/r2/x.log", ["a/**/{release}/*.log"]) == Facts(release="r2")


def test_path_goes_before_sidecar_and_sidecar_before_flags(tmp_path: Path) -> None:
    """Each source fills only the gaps of the one before it."""
    log = tmp_path / "logs" / "1.4" / "arm" / "app.log.gz"
    log.parent.mkdir(parents=True)
    (log.parent / "app.log.meta.json").write_text('{"release": "9", "model": "m7", "phase": "load", "size": 3}')
    flags = Facts(release="8", model="m6", host="h1")
    assert told_for(log, [PATTERN], flags) == Facts("1.4", "arm", "h1", "m7", None, "load", None)


def test_a_broken_sidecar_tells_nothing(tmp_path: Path) -> None:
    """A sidecar that is no JSON object costs neither the log nor the flags."""
    (tmp_path / "a.log.meta.json").write_text("{not json")
    assert told_for(tmp_path / "a.log", [], Facts(release="1")) == Facts(release="1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{not json", "is not JSON"),
        ("[" * 200_000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ('["release"]', "is no JSON object"),
    ],
)
def test_a_broken_sidecar_is_a_problem(tmp_path: Path, text: str | bytes, said: str) -> None:
    """It is named with what is wrong; the one under the shorter name is read all the same."""
    beside = tmp_path / "a.log.meta.json"
    beside.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_sidecar(str(tmp_path / "a.log"))
    assert (found.facts, found.advice) == (Facts(), None)
    assert str(found.problem).startswith(f"{beside} {said}, so it tells nothing: write one object with any of release,")
    (tmp_path / "a.meta.json").write_text('{"release": "7"}')
    second = read_sidecar(str(tmp_path / "a.log"))
    assert (second.facts, second.problem) == (Facts(release="7"), found.problem)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"release": "7", "relase": "8"}', "has a key relase that is no fact; did you mean release?"),
        ('{"release": "7", "size": 3}', "has a key size that is no fact; facts are release, platform"),
        ('{"release": "7", "phase": "lunar"}', "has a phase that cannot be one, 'lunar', so it is left out."),
        ('{"release": "7", "model": ["m"]}', "has a model that cannot be one, ['m'], so it is left out."),
        ('{"release": "7", "model": null, "host": ""}', None),
    ],
)
def test_what_a_sidecar_tells_in_vain_is_advice(tmp_path: Path, text: str, said: str | None) -> None:
    """A key of no use costs nothing of the others and is no problem; what is empty on purpose is not spoken of."""
    (tmp_path / "a.log.meta.json").write_text(text)
    found = read_sidecar(str(tmp_path / "a.log.gz"))
    assert (found.facts, found.problem) == (Facts(release="7"), None)
    assert (found.advice is None) if said is None else (f"{tmp_path}/a.log.meta.json {said}" in str(found.advice))
    assert read_sidecar(str(tmp_path / "b.log")).advice is None


def test_a_pattern_with_a_wrong_name_is_refused() -> None:
    """A misspelt fact is an error with advice, not a fact that is never found."""
    with pytest.raises(FactsError, match=r"names 'relase': use each of release, platform"):
        from_pattern("x", ["{relase}/*.log"])


def test_words_of_a_record_tell_facts() -> None:
    """Only what is written as a named value counts, and a phase is one of the five."""
    text = (
        "starting\nrelease=2.1.0 platform: linux/arm64 phase=load attempt_id=a-17\nmodel_name=resnet phase of the moon"
    )
    assert facts_in(text) == Facts("2.1.0", "linux/arm64", None, "resnet", None, "load", "a-17")
    assert facts_in("NVIDIA Driver Release 575, phase: lunar") == Facts()


@pytest.mark.parametrize("phase", ["LOAD", "Load", "load"])
def test_a_phase_is_kept_in_small_letters(tmp_path: Path, phase: str) -> None:
    """In a record, a folder's name or a sidecar: capitals make no other phase, which would count on no unit."""
    (tmp_path / "a.log.meta.json").write_text(f'{{"phase": "{phase}"}}')
    assert facts_in(f"failed phase={phase}").phase == "load"
    assert from_pattern(f"logs/{phase}/a.log", ["logs/{phase}/*"]).phase == "load"
    assert told_for(tmp_path / "a.log", [], Facts()).phase == "load"


@pytest.mark.parametrize(("word", "path"), [("onnxruntime", "ort"), ("ORT", "ort"), (" TorchScript", "torchscript")])
def test_a_path_has_one_name(word: str, path: str) -> None:
    """The runtime's other name and capitals are the same path; any other word is none."""
    assert (path_named(word), make_facts({"path": word}).path) == (path, path)
    assert path_named("foo") is None


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--path", "foo"), "--path foo is none of ort, onnxruntime, torchscript."),
        (("--phase", "sleep"), "--phase sleep is none of prepare, load, warmup, infer, shutdown, unknown."),
    ],
)
def test_a_flag_that_names_no_such_fact_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str], said: str
) -> None:
    """Exit 2, one sentence with the names that are known, and no store."""
    (tmp_path / "a.log").write_text("KeyError: 'x'\n")
    code = run(["nightly", str(tmp_path / "a.log"), *option, "--db", f"sqlite:///{tmp_path}/store.db"])
    out, err = capsys.readouterr()
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert said in err
    assert not (tmp_path / "store.db").exists()


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01 00:00:00 ERROR [attempt_id=a-17] server: CUDA out of memory",
        'level=error ts=2026-01-01T00:00:00Z attempt_id=a-17 msg="CUDA out of memory"',
        '{"attempt_id": "a-17", "level": "error", "msg": "CUDA out of memory"}',
        '{"extra": {"attempt_id": "a-17"}, "level": "error", "msg": "CUDA out of memory"}',
        'ERROR server {"attempt_id": "a-17"} CUDA out of memory',
    ],
)
def test_an_attempt_is_known_in_any_logger_s_words(line: str) -> None:
    """An attempt's id is found as a prefix, in logfmt, in JSON and nested in it, and in the text."""
    assert one_record(line, source="x", options=SplitOptions()).facts.attempt_id == "a-17"


def test_the_count_of_a_retry_is_no_attempt_s_id() -> None:
    """``attempt: 2`` stands in the logs of every request that was tried twice."""
    line = '{"attempt": 2, "level": "error", "msg": "CUDA out of memory"}'
    assert one_record(line, source="x", options=SplitOptions()).facts.attempt_id is None


def test_the_failure_s_own_lines_go_before_what_was_said_before_it() -> None:
    """Of the requests that a log tells of, the failed one is that of the failing line, else the nearest before it."""
    before = ["INFO attempt_id=a-1 answered", "INFO attempt_id=a-2 started"]
    failing = "ERROR attempt_id=a-3 CUDA out of memory"
    for lines, attempt in (([*before, failing], "a-3"), ([*before, "ERROR CUDA out of memory"], "a-2")):
        data = [line.encode() for line in lines]
        items = split((RawLine(i * 50, i * 50 + 50, line) for i, line in enumerate(data)), "x", SplitOptions())
        assert [item.facts.attempt_id for item in items if isinstance(item, Record)] == [attempt]
