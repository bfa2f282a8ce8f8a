"""Redaction: no secret and nothing personal gets past, and what tells of the failure is not touched."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashpath.ingest.redact import REDACTIONS, cohort_key, redact

PLANTED = tomllib.loads((Path(__file__).parent / "planted.toml").read_text(encoding="utf-8"))["planted"]
YES = [(r.kind, before, after) for r in REDACTIONS for before, after in r.yes]
NO = [(r.kind, text) for r in REDACTIONS for text in r.no]


@pytest.mark.parametrize(("kind", "before", "after"), YES)
def test_each_kind_does_what_its_examples_say(kind: str, before: str, after: str) -> None:
    """Rule: every ``yes`` example of redactions.toml becomes its second half, and its kind is counted."""
    redacted = redact(before)
    assert redacted.text == after
    assert kind in dict(redacted.counts)


@pytest.mark.parametrize(("kind", "text"), NO)
def test_each_kind_leaves_what_its_examples_say(kind: str, text: str) -> None:
    """Rule: every ``no`` example of redactions.toml stays as it is."""
    assert redact(text).text == text, kind


def test_every_kind_has_an_example() -> None:
    """Rule: a kind without an example under test is not let in."""
    assert [r.kind for r in REDACTIONS if not r.yes] == []


FRAGMENTS = [text for _, *pair in YES for text in pair] + [text for _, text in NO]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4), st.sampled_from([" ", ": ", "=", ", ", "\n", "/"]))
def test_redacting_twice_is_redacting_once(parts: list[str], joint: str) -> None:
    """Rule: redact(redact(x)) == redact(x), for examples in any order and joined in any way."""
    once = redact(joint.join(parts)).text
    assert redact(once).text == once


def test_cohort_keys_are_stable_for_a_key_and_differ_between_keys() -> None:
    """Rule: the same host has the same hash under one key, another under another, and the name is not in it."""
    first, again, other = cohort_key("edge-7", b"a"), cohort_key("edge-7", b"a"), cohort_key("edge-7", b"b")
    assert first == again != other
    assert "edge" not in first


@pytest.mark.parametrize("planted", PLANTED, ids=[f"{p['kind']}-{i}" for i, p in enumerate(PLANTED)])
def test_nothing_planted_gets_past(planted: dict[str, str]) -> None:
    """Rule: each made-up secret of planted.toml is gone from the line that it stands in, and the loss is counted."""
    assert planted["value"] in planted["line"]
    redacted = redact(f"model loaded in 3.2 s\n{planted['line']}\nRuntimeError: failed\n")
    assert planted["value"] not in redacted.text
    assert redacted.counts
    assert redacted.text.startswith("model loaded in 3.2 s\n")
    assert redacted.text.endswith("\nRuntimeError: failed\n")


@pytest.mark.parametrize(
    "line",
    [
        '  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 109, in __init__',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.",
        "Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-2-7b/resolve/main/config.json.",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module 450.51.06, driver version 535.104.05.1",
        "model.safetensors sha256 53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "ValueError: Asking to pad but the tokenizer does not have a padding token. Set `pad_token`",
        "KeyError: 'encoder.layers.11.self_attn.k_proj.weight_scale'",
        "org.apache.commons.math.exception.NumberIsTooSmallException: 1,234,567,890 is smaller than the minimum (0)",
        "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
    ],
)
def test_what_tells_of_the_failure_stays(line: str) -> None:
    """Rule: code paths, versions, hashes of models, public hosts and plain numbers are not personal."""
    assert redact(line).text == line
