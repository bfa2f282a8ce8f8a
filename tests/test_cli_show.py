"""``crashpath show``: why a failure is where it is, and nothing in a log can steer who reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from crashpath.clustering.encoder import FakeEncoder
from crashpath.dashboard.cli import run
from crashpath.dashboard.exits import Exit
from crashpath.dashboard.inert import inert
from crashpath.dashboard.rekeying import write
from crashpath.dashboard.rule_text import rule_words
from crashpath.dashboard.testing import DIMENSION, a_night
from crashpath.ingest import deciding
from crashpath.ingest.clusters import cluster_id, known_clusters
from crashpath.ingest.decisions import By
from crashpath.ingest.keying import Keying
from crashpath.ingest.model import Signature as Signed
from crashpath.ingest.model import Variant
from crashpath.ingest.signature import sign
from crashpath.ingest.store import Store
from crashpath.ingest.tables import Signature

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TRACE = """Traceback (most recent call last):
  File "/srv/app/serve.py", line 10, in {function}
    model.run(feed)
{kind}: {message}
"""
MESSAGES = (
    ("RuntimeError", "shard 'alpha' of the index cannot be mapped"),
    ("RuntimeError", "shard 'beta' of the index cannot be mapped"),
    ("MemoryError", "cannot allocate memory for the index"),
    ("KeyError", "'[bold]token\x07type\u202eids[/bold]'"),
)


@pytest.fixture
def filled(store: Store, tmp_path: Path) -> Store:
    """A store after a night over a few failures."""
    folder = tmp_path / "logs" / "2.1" / "linux"
    folder.mkdir(parents=True)
    for i, (kind, message) in enumerate(MESSAGES):
        (folder / f"{i}.log").write_text(TRACE.format(kind=kind, message=message, function=f"step_{i}"))
    a_night(store, [folder])
    return store


def _shown(store: Store, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["show", *arguments, "--db", str(store.engine.url)]) == Exit.DONE
    out: str = capsys.readouterr().out
    return out


def _cluster(store: Store, word: str) -> str:
    with store.read() as session:
        return next(one.id for one in known_clusters(session) if word in one.label)


def _signature(store: Store, word: str) -> str:
    with store.read() as session:
        return (
            session.scalars(select(Signature.id).where(Signature.text.contains(word)).order_by(Signature.id)).first()
            or ""
        )


def test_a_cluster_says_why(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Class, rule, root line, parts, neighbours and lineage of a cluster, in 80 columns."""
    out = _shown(filled, capsys, _cluster(filled, "allocate"))
    for said in ("class oom_host", "because ", "rule ", "> MemoryError", "made of", "signature: sig", "nearest other",
                 "at distance", "what happened to it", "born as oom_host"):  # fmt: skip
        assert said in out, said
    assert max(map(len, out.splitlines())) <= 80


def test_a_signature_is_found_by_its_beginning(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """A unique beginning of an id is enough; an unknown one is one sentence and exit 4."""
    one = _signature(filled, "allocate")
    assert one in _shown(filled, capsys, one[:12])
    assert run(["show", "sig7-00", "--db", str(filled.engine.url)]) == Exit.FAILED
    assert "There is no signature" in capsys.readouterr().err


def test_text_of_logs_is_inert(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """Control and direction characters are spelled out, and no markup is obeyed."""
    out = _shown(filled, capsys, _signature(filled, "token"))
    assert "\x07" not in out
    assert "\u202e" not in out
    assert "> KeyError: '[bold]token\\x07type\\u202eids[/bold]'" in out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\tb", "a    b"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\u202eb\u200bc\u2028d", "a\\u202eb\\u200bc\\u2028d"),
        ("größe 模型 ✓", "größe 模型 ✓"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_inert(text: str, shown: str) -> None:
    """Letters of any language stay; what steers or hides is spelled out."""
    assert inert(text) == shown


def test_a_merged_cluster_is_followed(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """The id of a cluster that went into another shows that one, says so, and lists the decision."""
    target, gone = _cluster(filled, "allocate"), _cluster(filled, "shard")
    with filled.write() as session:
        by = By("somebody", NOW, "same index")
        deciding.merge(session, int(target[2:]), [int(gone[2:])], by)
    out = _shown(filled, capsys, gone)
    assert out.startswith(f"{gone} went into {target}.\n{target} ·")
    assert "somebody: merge of" in out
    assert "same index" in out
    assert f"took {gone}" in out


def test_what_is_said_of_a_comparison_is_true_now(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """What a person moved shows no comparison of before; what began a cluster near another is not called too far."""
    one, other = _cluster(filled, "shard"), _cluster(filled, "allocate")
    assert "in short: no cluster was known before" in _shown(filled, capsys, one)
    with filled.write() as session:
        moved = session.scalars(select(Signature).where(Signature.cluster_id == int(one[2:]))).all()
        known = {"threshold": 0.3, "shared": [], "differing": [], "words": "too far from all that is known"}
        for row in moved:
            row.why = {"exemplar": "sig2-0000000000000000", "distance": 0.21, **known}
    out = _shown(filled, capsys, one)
    assert "at distance 0.21" in out
    assert "in short: near that one, but its cluster as a whole did not take it" in out
    assert "joins up to" not in out
    with filled.write() as session:
        deciding.merge(session, int(other[2:]), [int(one[2:])], By("kim", NOW))
    out = _shown(filled, capsys, other)
    assert "was put here by a person\n" in out
    assert "0.21" not in out


def test_an_id_from_before_a_rekey_is_followed(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """A signature's old id, as it stands in somebody's ticket, leads to what it is now."""

    def other(variant: Variant) -> Signed:
        made = sign(variant)
        return Signed(f"sig9-{made.id[5:]}", made.text, made.tree)

    old = _signature(filled, "allocate")
    write(filled, Keying("sig9+test", other), FakeEncoder(DIMENSION), clock=lambda: NOW)
    out = _shown(filled, capsys, old)
    assert f"{old} is sig9-{old[5:]} since a re-key." in out
    assert "keyed by sig9+test, not sig2" in " ".join(_shown(filled, capsys, _cluster(filled, "allocate")).split())


def test_json_has_all(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """What the text says stands in the JSON, too: rules, neighbours with terms, decisions, lineage."""
    name = _cluster(filled, "shard")
    with filled.write() as session:
        deciding.name(session, int(name[2:]), "index", By("somebody", NOW))
    shown = json.loads(_shown(filled, capsys, name, "--json"))
    assert shown["row"]["name"] == "index"
    assert {"followed", "rules", "nearest", "decisions", "events", "signatures"} <= set(shown)
    assert [row["kind"] for row in shown["decisions"]] == ["name"]
    assert shown["signatures"][0]["tree"]["parts"]
    assert all(rule in shown["rules"] for one in shown["signatures"] for rule in [one["examples"][0]["rule"]])
    near = shown["nearest"]
    assert name not in {one["cluster"] for one in near}
    assert [one["distance"] for one in near] == sorted(one["distance"] for one in near)


def test_neighbours_that_contradict_say_on_what(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """A cluster that may never be one with this one says why, however near it is."""
    shown = json.loads(_shown(filled, capsys, _cluster(filled, "allocate"), "--json"))
    assert any("memoryerror" in reason for one in shown["nearest"] for reason in one["contradicts"])


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("chain-first-cause", "no rule knows"),
        ("kernel-oom-killed", "oom_host"),
        ("defect:ValueError", "plain text"),
        ("a-rule-that-was", "does not have"),
    ],
)
def test_a_rule_says_what_it_says(rule: str, said: str) -> None:
    """Every id that a root may carry has words, also one that only another version knows."""
    assert said in " ".join(rule_words(rule))


def test_an_id_is_shown_as_people_write_it(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    """``c-1`` and ``C-0001`` are one cluster; a bare number is a crash."""
    assert _shown(filled, capsys, "c-1") == _shown(filled, capsys, cluster_id(1))
    assert _shown(filled, capsys, "1").startswith("crash 1 ·")
