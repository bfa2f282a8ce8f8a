"""Frames that check or throw for their caller."""

from __future__ import annotations

import pytest

from crashpath.ingest.guards import is_guard, past_guards
from crashpath.ingest.model import Frame

GUARDS = (
    ("checkState", "com.google.common.base.Preconditions"),
    ("notNull", "org.apache.commons.lang3.Validate"),
    ("requireNonNull", "java.util.Objects"),
    ("throwNpe", "kotlin.jvm.internal.Intrinsics"),
    ("verifyValueBounds", "org.acme.time.FieldUtils"),
    ("createIllegalArgumentException", "org.acme.MathErrors"),
    ("_check_input_dim", "layers"),
    ("raise_for_status", "client"),
    ("ns::Tensor::enforceSize", "libserve"),
)
OTHERS = (
    ("predict", "server"),
    ("failover", "router"),
    ("checkout", "repo"),
    ("assertions", "report"),
    ("load", "com.acme.Validation2Loader"),
    ("validator", "api"),
    ("tokenize", "text"),
)


@pytest.mark.parametrize(("function", "module"), GUARDS)
def test_guards(function: str, module: str) -> None:
    """A function that says that it checks or throws, and one of a class made for it."""
    assert is_guard(Frame(function, module, True))


@pytest.mark.parametrize(("function", "module"), OTHERS)
def test_no_guards(function: str, module: str) -> None:
    """A word that only begins like one is none."""
    assert not is_guard(Frame(function, module, True))


def test_the_caller_is_left() -> None:
    """Guards go from the innermost end alone, and never all there is."""
    check, raised, served = Frame("check", "a", True), Frame("raise_error", "b", True), Frame("serve", "c", True)
    assert past_guards([check, raised, served, check]) == (served, check)
    assert past_guards([check, raised]) == (check, raised)
    assert past_guards([]) == ()
