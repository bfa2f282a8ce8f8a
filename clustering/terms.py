"""The terms of a root text: words that state a cause, codes that decide it, and values that do neither.

Two texts may share nearly every word and still tell of two causes: ``certificate has expired`` and ``certificate
signed by unknown authority``, a 401 and a 403. So codes are compared by family (an HTTP status with an HTTP status),
and plain words that only one side has are counted apart from names and values, which differ between hosts and models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACEHOLDER = re.compile(r"<[a-z_0-9]+>")
_TOKEN = re.compile(r"[A-Za-z_][\w]*")
_TYPE = re.compile(r"^(?:[\w$]+\.)*\w*(?:Error|Exception|Fail|Interrupt|Warning|[.$]\w+)(?::|$)")
_NAME = re.compile(r"[A-Z]{2,}|[a-z][A-Z]|_|\d")

_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a an and any are as at be been but by can could did do does for from had has have if in into is it its may
        more of on or our that the their them then there these this to was were when which while will with would you
        your so during using used use node name named line file error exception failed failure returned status code
        message please try trying see also following below above given
        """,
    )
)
_NEGATIONS = frozenset({"not", "no", "never", "without", "non", "cannot", "none"})

_CODES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "http",
        re.compile(
            r"(?:\bHTTP\S*\s+|status(?:[ _]?code)?\W{1,3}|response\W{1,3}|\b)([45]\d\d)(?=\s*(?:Client|Server)\s+Error"
            r"|\s+(?:Unauthorized|Forbidden|Not Found|Service|Bad|Internal|Too Many|Gateway))",
            re.IGNORECASE,
        ),
    ),
    ("http", re.compile(r"(?:\bHTTP(?:/[\d.]+)?\s+|\bstatus(?:[ _]?code)?\W{1,3})([45]\d\d)\b", re.IGNORECASE)),
    ("errno", re.compile(r"\b(?:errno|os error)\W{1,2}(\d{1,3})\b", re.IGNORECASE)),
    ("signal", re.compile(r"\b(SIG[A-Z]{2,6})\b")),
    ("exit", re.compile(r"\bexit(?:ed)?(?:[ _]with)?[ _](?:code|status)\W{1,3}(-?\d{1,3})\b", re.IGNORECASE)),
    (
        "status",
        re.compile(
            r"\b((?:CUDNN|CUBLAS|CUSPARSE|CUFFT|CUSOLVER)_STATUS_[A-Z_]+|CUDA_ERROR_[A-Z_]+|NVML_[A-Z_]+"
            r"|CL_[A-Z_]+|VK_ERROR_[A-Z_]+|QNN_[A-Z_]*ERROR[A-Z_]*|nccl[A-Z]\w+Error)\b"
        ),
    ),
    (  # an access that a sanitizer forbids: beyond the end and after the free are two bugs
        "memory",
        re.compile(
            r"\b((?:heap|stack|global|container|dynamic-stack|intra-object|use|double|bad|invalid|alloc)-(?:[a-z]+-)*"
            r"(?:overflow|underflow|free|return|scope|poison|mismatch|value))\b"
        ),
    ),
    ("number", re.compile(r"\b[A-Za-z]+[Ss]tatus\s?[=:]\s?(-?\d{1,6})\b")),  # a vendor's own, synStatus=26
    ("cuda", re.compile(r"\bCUDA (?:driver |runtime )?error\W{1,2}([a-z][a-z -]{5,60})", re.IGNORECASE)),
    ("op", re.compile(r"\brunning ([A-Z]\w+) node\b|\bimplementation for (?:the node \S+:)?([A-Z]\w+)\(\d")),
)


@dataclass(frozen=True, slots=True)
class Terms:
    """Terms of one text. ``words`` are plain, ``names`` are identifiers, ``codes`` are ``family=code``.

    ``cause`` are the plain words that stand behind the last colon alone: what the text says of why.
    """

    words: frozenset[str]
    names: frozenset[str]
    codes: frozenset[str]
    cause: frozenset[str] = frozenset()

    @property
    def strength(self) -> int:
        """How much the text says of its cause; below ``WEAK`` the frames say more."""
        return len(self.words) + len(self.names) + 2 * len(self.codes)


WEAK = 4


def terms_of(text: str, *, raw: str | None = None) -> Terms:
    """Split a masked root message into its terms; codes are read from the message as it was, where it is given.

    Placeholders of masked values and an exception's type in front are no terms.
    """
    text = _TYPE.sub(" ", text, count=1)
    plain = _PLACEHOLDER.sub(" ", text)
    words, names = _split(plain)
    before, colon, behind = plain.rpartition(": ")
    cause = _split(behind)[0] - _split(before)[0] if colon else set()
    source = text if raw is None else raw
    found = ((family, match[match.lastindex or 0].lower()) for family, p in _CODES for match in p.finditer(source))
    codes = {f"{family}={code}" for family, code in found if not code.endswith("_success")}
    return Terms(frozenset(words), frozenset(names), frozenset(codes), frozenset(cause))


def _split(plain: str) -> tuple[set[str], set[str]]:
    """Return the plain words and the names of a text."""
    words: set[str] = set()
    names: set[str] = set()
    for token in _TOKEN.findall(plain):
        if _NAME.search(token):
            names.add(token.lower())
        elif token.lower() in _NEGATIONS or (len(token) > 2 and token.lower() not in _STOP):
            words.add(_stem(token.lower()))
    return words, names


def family(code: str) -> str:
    """Return the family of a code: only codes of one family can contradict each other."""
    return code.partition("=")[0]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
