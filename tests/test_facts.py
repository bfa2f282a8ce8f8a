"""Where a crash belongs: words, path pattern, sidecar, flags, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashpath.ingest.facts import FactsError, facts_for_path, facts_in, from_pattern
from crashpath.ingest.model import Facts

PATTERN = "logs/{release}/{platform}/*.log"


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
    assert facts_for_path(str(log), [PATTERN], flags) == Facts("1.4", "arm", "h1", "m7", None, "load", None)


def test_a_broken_sidecar_tells_nothing(tmp_path: Path) -> None:
    """A sidecar that is no JSON object costs neither the log nor the flags."""
    (tmp_path / "a.log.meta.json").write_text("{not json")
    assert facts_for_path(str(tmp_path / "a.log"), [], Facts(release="1")) == Facts(release="1")


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
