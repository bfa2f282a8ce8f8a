"""What a reason is, and how a text is made fit to be matched."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crashpath.runtime.errors import Failure, InputError
from crashpath.runtime.values import Phase

DETAIL = 2000
"""Characters of a library's message that a `Failure` keeps: head and tail."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One way in which a library says that something of this kind happened.

    ``types`` are dotted names, of which the error's class or one of its bases must have one; ``package.*`` stands for
    every class of a package. ``pattern`` must be found in the masked message, if there is one; its group ``input``
    names the input at fault. ``phases`` are where the reason holds; none given: everywhere.
    """

    failure: type[Failure] | type[InputError]
    types: tuple[str, ...]
    pattern: re.Pattern[str] | None
    phases: tuple[Phase, ...] = ()
    note: str = ""

    def holds(self, names: tuple[str, ...], text: str, phase: Phase) -> re.Match[str] | bool:
        """Return the match (``True`` where there is no pattern), or ``False``."""
        if self.phases and phase not in self.phases:
            return False
        if not any(_is_named(name, self.types) for name in names):
            return False
        return True if self.pattern is None else self.pattern.search(text) or False


def _is_named(name: str, types: tuple[str, ...]) -> bool:
    return any(name.startswith(one[:-1]) if one.endswith(".*") else name == one for one in types)


_LIBRARY = re.compile(r"(?<![\w.:/])(?:/[^\s:'\",;()\[\]/]+)*/([^\s:'\",;()\[\]/]+\.so(?:\.[\d.]+)?)\b")
_PATH = re.compile(r"(?<![\w.:/])(?:/[^\s:'\",;()\[\]/]+){2,}/?|\b[A-Za-z]:\\[^\s:'\",;]+")
_NODE = re.compile(r"(Name:|In Node, \(|Node \()\s*['\"]?[^'\",)]*['\"]?")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_INTERPRETER = "The following operation failed in the TorchScript interpreter"
_LAST_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Interrupt): ", re.MULTILINE)


def masked(message: str) -> str:
    """Return a message without what a user chose: paths (libraries keep their name), names of nodes, addresses.

    Of an error of the TorchScript interpreter only what was raised in it is left: the lines before show source code.
    """
    text = message
    if text.lstrip().startswith(_INTERPRETER):
        marks = list(_LAST_ERROR.finditer(text))
        if marks:
            text = text[marks[-1].start() :]
    text = _NODE.sub(r"\1<node>", text)
    text = _LIBRARY.sub(r"<path>/\1", text)
    return _ADDRESS.sub("<addr>", _PATH.sub("<path>", text))


def bounded(text: str) -> str:
    """Return the text, its middle cut out where it is longer than `DETAIL`."""
    clean = text.strip()
    if len(clean) <= DETAIL:
        return clean
    half = DETAIL // 2
    return f"{clean[:half]} […] {clean[-half:]}"
