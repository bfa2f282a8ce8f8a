"""Secrets and personal data → placeholders, before anything is stored or embedded.

The kinds are data (``redactions.toml``), each with examples that the tests read. Every kind has *hints*: where none
of them is in the text its pattern is not run; one automaton finds the hints of all kinds in a single pass. A pattern
replaces its group ``v``, or all that it matches. Checks that a pattern cannot make (check digits, ranges,
well-known hosts) are named in the data and written here. What is redacted once stays as it is: ``redact`` is
idempotent, and its placeholders are those of the masks.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import re2


@dataclass(frozen=True, slots=True)
class Redaction:
    """One entry of ``redactions.toml``. ``yes`` maps before to after; a text of ``no`` stays as it is."""

    kind: str
    placeholder: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    cue: str | None = None
    check: str | None = None
    yes: tuple[tuple[str, str], ...] = ()
    no: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without secrets and personal data, and how many of each kind were in it."""

    text: str
    counts: tuple[tuple[str, int], ...] = ()


def _luhn(value: str) -> bool:
    digits = [int(c) for c in value if c.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2:
        return False
    doubled = (sum(divmod(2 * d, 10)) for d in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _iban(value: str) -> bool:
    bare = value.replace(" ", "")
    if not 15 <= len(bare) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1


def _ipv4(value: str) -> bool:
    try:
        address = IPv4Address(value)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified) and value != "255.255.255.255"


def _ipv6(value: str) -> bool:
    try:
        address = IPv6Address(value.partition("%")[0])
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


_PUBLIC_HOSTS = frozenset(
    {"huggingface.co", "hf.co", "pypi.org", "pythonhosted.org", "github.com", "githubusercontent.com", "pytorch.org"}
    | {"nvidia.com", "docker.io", "docker.com", "ghcr.io", "quay.io", "gcr.io", "ollama.ai", "ollama.com", "openai.com"}
    | {"anthropic.com", "googleapis.com", "amazonaws.com", "azure.com", "windows.net", "tensorflow.org", "google.com"}
    | {"onnxruntime.ai", "kaggle.com", "modelscope.cn", "microsoft.com", "python.org", "npmjs.org", "npmjs.com"}
    | {"conda.io", "anaconda.org", "anaconda.com"}
)
_NO_HOST = frozenset(
    {
        "localhost",
        "none",
        "null",
        "unknown",
        "true",
        "false",
        "host",
        "hostname",
        "the",
        "default",
        "self",
        "str",
        "node",
    }
)


def _private_host(value: str) -> bool:
    lowered = value.lower().rstrip(".")
    if lowered in _NO_HOST or re.fullmatch(r"[\d.]+", lowered):
        return False
    return not any(lowered == public or lowered.endswith("." + public) for public in _PUBLIC_HOSTS)


_NO_USER = frozenset(
    {"shared", "public", "default", "runner", "root", "user", "username", "none", "null", "app", "me", "you", "x"}
)


def _person(value: str) -> bool:
    return value.lower() not in _NO_USER


_NO_SECRET = re.compile(
    r"(?:true|false|none|null|nil|undefined|required|missing|invalid|expired|optional|empty|not|is|was|in|to|for|of|the|and|or|bool|str|string|int|"
    r"token|tokens|secret|password|key|example|changeme\?|\*+|x+|\.+|\$\{?\w+\}?|%\w+%|os\.environ.*|-?\d{1,5}(?:\.\d+)?)\Z",
    re.IGNORECASE,
)


def _secret(value: str) -> bool:
    return len(value) > 3 and _NO_SECRET.match(value) is None


def _mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _phone(value: str) -> bool:
    return 8 <= sum(c.isdigit() for c in value) <= 15


_CHECKS: dict[str, Callable[[str], bool]] = {
    "luhn": _luhn,
    "iban": _iban,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "private_host": _private_host,
    "person": _person,
    "secret": _secret,
    "mixed": _mixed,
    "phone": _phone,
}


def load_redactions() -> tuple[Redaction, ...]:
    """Read ``redactions.toml`` in its order."""
    raw = tomllib.loads(files(__package__).joinpath("redactions.toml").read_text(encoding="utf-8"))
    return tuple(
        Redaction(
            kind=entry["kind"],
            placeholder=entry["placeholder"],
            pattern=re.compile(entry["pattern"], re.ASCII),
            hints=tuple(entry.get("hints", ())),
            cue=entry.get("cue"),
            check=entry.get("check"),
            yes=tuple((before, after) for before, after in entry.get("yes", ())),
            no=tuple(entry.get("no", ())),
        )
        for entry in raw["redaction"]
    )


_PLACEHOLDER = re.compile(r"<[a-z]+>")
"""What stands in a text that was redacted, or masked, before."""


class _Counted:
    """The replacement of one kind, for ``re.sub``; counts what it replaced."""

    def __init__(self, redaction: Redaction) -> None:
        self.n = 0
        self._placeholder = redaction.placeholder
        self._check = _CHECKS[redaction.check] if redaction.check else None
        self._group: str | int = "v" if "v" in redaction.pattern.groupindex else 0

    def __call__(self, match: re.Match[str]) -> str:
        whole = match.group()
        group = self._group if match.group(self._group) is not None else 0
        value = match.group(group)
        if _PLACEHOLDER.search(value) or (self._check is not None and not self._check(value)):
            return whole
        self.n += 1
        start = match.start(group) - match.start()
        return whole[:start] + self._placeholder + whole[start + len(value) :]


class _Cues:
    """Finds, in one pass over a text, the kinds that have anything to look for in it."""

    def __init__(self, redactions: tuple[Redaction, ...]) -> None:
        options = re2.Options()
        options.case_sensitive = False
        options.encoding = re2.Options.Encoding.LATIN1
        self._set = re2.Set.SearchSet(options)
        for redaction in redactions:
            self._set.Add(redaction.cue or "|".join(re2.escape(hint) for hint in redaction.hints))
        self._set.Compile()

    def find(self, text: str) -> Iterable[int]:
        """Return the indices of the kinds, in their order."""
        return sorted(self._set.Match(text.encode("utf-8", "surrogatepass")) or ())


REDACTIONS = load_redactions()
_CUES = _Cues(REDACTIONS)


def redact(text: str) -> Redacted:
    """Return ``text`` without secrets and personal data, with a count for each kind that was found."""
    counts: list[tuple[str, int]] = []
    for index in _CUES.find(text):
        redaction = REDACTIONS[index]
        counted = _Counted(redaction)
        text = redaction.pattern.sub(counted, text)
        if counted.n:
            counts.append((redaction.kind, counted.n))
    return Redacted(text, tuple(counts))


def cohort_key(value: str, key: bytes) -> str:
    """Return a keyed hash (16 hex digits) of a host or pod: cohorts can be told apart, and no name is kept.

    ``key`` has at most 64 bytes and belongs to one store; with another key the same host has another hash.
    """
    return blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8, key=key).hexdigest()
