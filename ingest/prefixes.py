"""The prefixes of the field as data: what each looks like, and which characters it can start with.

Groups that a pattern may name: ``stamp``, ``level``, ``writer`` (``w2`` for a second part of it) and ``host``.
Exactly one blank after a prefix goes with it, so that the indentation of a trace survives.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import NamedTuple

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>])")
BARE_COLOUR = re.compile(r" ?\[\d{1,2}(?:;\d{1,3})*m")

_TIME = r"\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_ISO = rf"\d{{4}}[-/.]\d\d[-/.]\d\d(?:[T _-]| - ){_TIME}{_ZONE}"
_MONTH_DAY = rf"\d\d[-/]\d\d {_TIME}"
_MONTH = rf"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]?\d (?:\d{{4}} )?{_TIME}"
_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|ERR|FATAL|CRITICAL|SEVERE)"
_ANY_LEVEL = (
    r"(?P<level>(?i:trace|debug|info|information|notice|warning|warn|error|err|fatal|critical|crit|severe|emerg|alert)"
    r"|[IWEFD])"
)
_ANDROID = r"(?P<level>[VDIWEFA])"
_LOGCAT = rf"(?P<stamp>(?:\d{{4}}-)?{_MONTH_DAY})"
_GLOG = r"(?P<level>[IWEFD])"
_PLACE = r"[\w./<>-]+(?:\.\w+)?:\d+"
_SOURCE = r"[\w/.+-]+\.(?:cc|cpp|cxx|cu|cuh|c|h|hpp|mm|py|go|rs|java|scala|ts|js)"
# Loggers pad the level to 5, 8 or 10 columns; any other number of blanks is one, and the indentation of a trace.
_PAD = (
    r"(?:(?<=INFO) {5}(?! )|(?<=INFO:) {5}(?! )|(?<=INFO) {2}(?! )|(?<=WARN) {2}(?! )|(?<=WARNING) {2}(?! )"
    r"|(?<=WARNING:) {2}(?! )|(?<!INFO)(?<!INFO:) {4}(?! )| |$)"
)
_KEPT_TAGS = r"(?!lowmemorykiller|lmkd|ActivityManager|am_|killinfo|kernel|Zygote)"


class Rule(NamedTuple):
    """One prefix. ``needle`` must be in the line for a try; ``more``: a logger's own fields may follow it.

    ``third``: which third characters may follow a digit, as in ``THIRDS``. ``worded``: it starts with a
    level in full.

    ``kept``: it is read, but it stays in the text, because parsers know it. The numbers are those of its groups, 0 for
    none. ``alone``: whether it fits depends on nothing after it, so the same prefix on the next line means the same.
    """

    name: str
    chars: str
    needle: str
    match: Callable[[str, int], re.Match[str] | None]
    more: bool
    kept: bool
    alone: bool
    third: str
    worded: bool
    stamp: int
    level: int
    writer: int
    host: int


_ALONE = frozenset({"gcp", "compose", "kubectl", "ray", "glog", "vllm", "torchserve-model"})


def _rule(name: str, chars: str, pattern: str, needle: str = "", more: bool = False, kept: bool = False) -> Rule:
    compiled = re.compile(pattern)
    groups = (compiled.groupindex.get(group, 0) for group in ("stamp", "level", "writer", "host"))
    worded = pattern.startswith(_LEVEL)
    return Rule(name, chars, needle, compiled.match, more, kept, name in _ALONE, _third(pattern), worded, *groups)


def _third(pattern: str) -> str:
    if pattern.startswith((rf"(?P<stamp>{_ISO})", r"(?P<stamp>\d{4}-")):
        return "0"
    if pattern.startswith((rf"(?P<stamp>{_MONTH_DAY})", r"(?P<stamp>\d\d/\d\d")):
        return "-"
    if pattern.startswith(_LOGCAT):
        return "-0"
    return ":" if pattern.startswith(_TIME) else "-0: "


_DIGIT = string.digits
_LOWER = string.ascii_lowercase
_LETTER = string.ascii_letters
LEVEL_FIRST = "TDINWEFCS"

LINE_RULES: tuple[Rule, ...] = (
    # -- containers and collectors
    _rule(
        "gcp",
        LEVEL_FIRST + "*",
        rf"(?:[A-Z*]+)\s+(?P<stamp>{_ISO})\s+\[resource\.labels\.\w+: ?(?P<writer>[^\]]+)\] ?",
        "[resource.labels",
    ),
    _rule("compose", _LETTER + _DIGIT, r"(?P<writer>[A-Za-z0-9][\w.-]*) +\| ", "| "),
    _rule("compose-empty", _LETTER + _DIGIT, r"(?P<writer>[A-Za-z0-9][\w.-]*-\d+) +\|$", " |"),
    _rule("kubectl", "[", r"\[pod/(?P<writer>[\w.-]+(?:/[\w.-]+)?)\] ?", "[pod/"),
    _rule("kubetail", "[", r"\[(?P<writer>[a-z0-9-]+-[a-z0-9]{8,10}-[a-z0-9]{5}(?:[ /:][\w.-]+)?)\] "),
    _rule(
        "stern",
        _LOWER + "›",
        r"(?:› )?(?P<writer>[a-z0-9][a-z0-9._-]*-[a-z0-9]{5,10}-[a-z0-9]{5} [a-z0-9][\w-]*) (?:› )?",
        "-",
    ),
    _rule("mpirun", "[", r"\[(?P<writer>\d+,\d+)\]<std(?:out|err)>: ?", ">:"),
    _rule("rank", "[", r"\[(?P<writer>(?:rank|worker-?|local_rank:? ?)\d+)\]:? ?"),
    _rule("torchrun", "[", r"\[(?P<writer>default\d+)\]:"),
    _rule("syslog5424", "<", r"<\d+>1 (?P<stamp>\S+) (?P<host>\S+) (?P<writer>\S+ \S+) \S+ (?:-|\[.*?\]) ?"),
    _rule("syslog-pri", "<", r"<\d{1,3}>(?=[A-Z\d])"),
    _rule(
        "ray",
        "(",
        r"\((?P<writer>[\w.:<>/-]+(?:[ ,]+[\w.-]+=[^\s,)]+)*[ ,]+(?:pid|ip|rank)=[^\s,)]+(?:, ?\w+=[^\s,)]+)*)\) ?",
        "=",
    ),
    _rule(
        "nccl",
        _LETTER + _DIGIT,
        r"[\w.-]+:\d+:\d+ \[\d+\] (?:[\w./]+:\d+ )?(?=NCCL (?P<level>INFO|WARN|TRACE|ERROR))",
        "NCCL ",
    ),
    _rule(
        "torchserve-model",  # its level is that of a pipe, not of what the model said
        _DIGIT + "[",
        rf"(?P<stamp>{_ISO}) \[[A-Z]+ *\] (?P<writer>W-\d+-[\w.-]+?)-std(?:out|err) MODEL_LOG - ?",
        "MODEL_LOG",
    ),
    _rule(
        "torchserve",
        _DIGIT + "[",
        rf"(?P<stamp>{_ISO}) \[{_LEVEL} *\] (?P<writer>W-\d+-[\w.-]+?)(?:-std(?:out|err))? [\w.]+ - ?",
        " W-",
    ),
    _rule(
        "iso-plain",  # no other system stamps so
        _DIGIT,
        rf"(?P<stamp>\d{{4}}-\d\d-\d\d(?:T{_TIME}| \d\d:\d\d:\d\d,\d{{3}}){_ZONE})(?: [-|] |\t|: | |$|(?=\[))",
        ":",
        more=True,
    ),
    # -- systems
    _rule(
        "syslog", "JFMASOND", rf"(?P<stamp>{_MONTH}) (?P<host>[\w.:-]+) (?P<writer>[\w./@()-]+(?:\[\d+\])?): ?", ": "
    ),
    _rule("month", "JFMASOND", rf"(?P<stamp>{_MONTH}) ", ":", more=True),
    _rule("dmesg", "[", r"\[ *\d{1,8}\.\d{6}\](?:\[ *[TC]\d+\])? ?", "."),
    _rule("logcat-long", "[", rf"\[ (?P<stamp>{_MONTH_DAY})\s+(?P<writer>\d+): *\d+ {_ANDROID}/\S+ *\]$", "/"),
    _rule("logcat-brief", "VDIWEFA", rf"{_ANDROID}/{_KEPT_TAGS}[^(:]{{1,40}}\( *(?P<writer>\d+)\): ?", "): "),
    _rule("logcat-brief-empty", "VDIWEFA", rf"{_ANDROID}/[^(:]{{1,40}}\( *(?P<writer>\d+)\):$", "):"),
    _rule("logcat-tag", "VDIWEFA", rf"{_ANDROID}/{_KEPT_TAGS}[\w.$-]{{1,40}} *: ", "/"),
    _rule(
        "threadtime",
        _DIGIT,
        rf"{_LOGCAT}\s+(?:\d+\s+)?(?P<writer>\d+)\s+\d+ {_ANDROID} {_KEPT_TAGS}[^:]{{0,40}}?\s*: ?",
        ":",
    ),
    _rule("threadtime-kept", _DIGIT, rf"{_LOGCAT}\s+(?P<writer>\d+)\s+\d+ {_ANDROID} ", ":"),
    _rule(
        "android-studio",
        _DIGIT,
        rf"{_LOGCAT}\s+(?P<writer>\d+)[-/]\d+(?:/\S+)?\s+{_KEPT_TAGS}\S+\s+\S+\s+{_ANDROID} {{1,2}}",
        "-",
    ),
    _rule(
        "android-studio-old",
        _DIGIT,
        rf"{_LOGCAT} (?P<writer>\d+)-\d+/\S+ {_ANDROID}/[^:]{{1,40}}: ",
        "/",
    ),
    # -- loggers of the field's libraries
    _rule("glog", "IWEFD", rf"{_GLOG}(?P<stamp>\d{{4}} {_TIME})\s+(?:\d+ )?[\w/.<>+-]+:\d+\] ?", "] "),
    _rule("glog-empty", "IWEFD", rf"{_GLOG}(?P<stamp>\d{{4}} {_TIME})\s+(?:\d+ )?[\w/.<>+-]+:\d+\]$", "]"),
    _rule("glog-iso", "IWEFDC", rf"(?P<level>[IWEFDC])(?P<stamp>{_ISO})\s+(?:[\w-]+ )?[\w/.<>+-]+:\d+\](?: |$)", "]"),
    _rule("c10", "[", rf"\[{_GLOG}(?:(?P<stamp>\d{{4}} {_TIME})\s)?\s?{_SOURCE}:\d+\] ?", "]"),
    _rule("ray-native", "[", rf"\[(?P<stamp>{_ISO}) {_GLOG} \d+ \d+\] (?:\(\w+\) )?{_SOURCE}:\d+: ", "]"),
    _rule("onnxruntime", "[", r"\[(?P<level>[VIWEF]):(?:onnxruntime|[\w-]*):", ":", kept=True),
    _rule("tensorrt-llm", "[", r"\[TensorRT-LLM\]\[(?P<level>[A-Z]+)\] ", "[TensorRT-LLM]", kept=True),
    _rule("trt", "[", rf"\[(?P<stamp>\d\d/\d\d/\d{{4}}-{_TIME})\] (?:\[TRT\] )?\[(?P<level>[IWEVF])\] ", "] ["),
    _rule("trt-short", "[", r"\[TRT\] \[(?P<level>[IWEVF])\] ", "[TRT]"),
    _rule("vllm", LEVEL_FIRST, rf"{_LEVEL} +(?P<stamp>{_MONTH_DAY}) \[?{_PLACE}\] ?", "] "),
    _rule("vllm-empty", LEVEL_FIRST, rf"{_LEVEL} +(?P<stamp>{_MONTH_DAY}) \[?{_PLACE}\]$", "]"),
    _rule("transformers", "[", rf"\[{_LEVEL}\|[\w./]+:\d+\] (?P<stamp>{_ISO}) >> ?", "|"),
    _rule("gunicorn", "[", rf"\[(?P<stamp>{_ISO})\] \[(?P<writer>\d+)\] \[{_LEVEL}\] ?", "] ["),
    # -- general shapes
    _rule("iso", _DIGIT, rf"(?P<stamp>{_ISO})(?: [-|] |\t|: | |$|(?=\[))", ":", more=True),
    _rule("month-day", _DIGIT, rf"(?P<stamp>{_MONTH_DAY})(?: [-|] |\t|: | |$)", ":", more=True),
    _rule("spark", _DIGIT, rf"(?P<stamp>\d\d/\d\d/\d\d {_TIME}) {_LEVEL} (?:(?!\w*(?:Error|Exception):)\w+: )?", ":"),
    _rule("clock", _DIGIT, rf"{_TIME}(?: [-|] | )(?=\[|{_LEVEL}\b)", ":", more=True),
    _rule(
        "bracket-stamp",
        "[",
        rf"\[(?P<stamp>{_ISO}|{_MONTH_DAY}|\w{{3}} {_MONTH}(?: \d{{4}})?)(?: {_ZONE})?\](?: - | |$|(?=\[))",
        ":",
        more=True,
    ),
    _rule("bracket-clock", "[", rf"\[{_TIME}\] ?", ":", more=True),
    _rule("level-name", LEVEL_FIRST, rf"{_LEVEL}:(?!\d)[\w.-]+:", ":"),
    _rule("level-colon", LEVEL_FIRST, rf"{_LEVEL}:{_PAD}", ":"),
    _rule("level-dash", LEVEL_FIRST, rf"{_LEVEL} *(?: - | \| )", " ", more=True),
    _rule(
        "level-bare",
        LEVEL_FIRST,
        rf"{_LEVEL}{_PAD}(?=[\[(A-Za-z'\" \t]|\d{{4}}-|\d\d-\d\d )(?!EXCEPTION|ERROR|=)",
        " ",
        more=True,
    ),
    _rule(
        "level-bracket",
        "[",
        r"\[(?P<level>(?i:trace|debug|info|notice|warning|warn|error|err|fatal|critical)) *\](?: - |: ?| |$|(?=\[))",
        "]",
        more=True,
    ),
    _rule("actions", "#", r"##\[(?P<level>error|warning|debug)\]", "##["),
)
"""What a line may start with, the more telling first."""

FIELD_RULES: tuple[Rule, ...] = (
    _rule("cri", "s", r"std(?:out|err) [FP](?: |$)", "std"),
    _rule("worker-level", "[", rf"\[(?P<writer>\d+)\] \[{_ANY_LEVEL} *\] ?", "] ["),
    _rule("address", "[", r"\[address=\S+, (?P<writer>pid=\d+)\] ", "[address="),
    _rule("level-in", "[", rf"\[{_ANY_LEVEL} *\](?: - |: ?| |$|(?=\[))", "]", more=True),
    _rule("place-in", "[", rf"\[{_PLACE}\](?: - |: ?| |$)", ":"),
    _rule("thread-level", "[", rf"\[[^\]]{{1,80}}\] {_LEVEL} +[\w.$\[\]/-]+ *(?: - |: )", "]"),
    _rule("logger-level", "[", rf"\[[\w.:-]+\]\[{_LEVEL} *\](?: - | |$)", "]["),
    _rule("thread-bare", "[", rf"\[[^\]]{{1,80}}\] {_LEVEL} +", "]"),
    _rule("tensorflow", "IWEF", rf"{_GLOG} {_SOURCE}:\d+\](?: |$)", "]"),
    _rule("spring", LEVEL_FIRST, rf"{_LEVEL} +\d+ --- \[[^\]]*\] [\w.$\[\]/-]+ *: ", " --- "),
    _rule("loguru", LEVEL_FIRST, rf"{_LEVEL} *\| [\w.<>]+:[\w<>.]+:\d+ - ", "| "),
    _rule("level-pipe", LEVEL_FIRST, rf"{_LEVEL} *\| (?:[\w.:<>-]+ *\| )?", "| "),
    _rule("level-place", LEVEL_FIRST, rf"{_LEVEL} +\(?(?:{_SOURCE}|[\w.]+):\d+[\]):] ?", ":"),
    _rule(
        "level-logger",
        LEVEL_FIRST,
        rf"{_LEVEL}[: ] *(?:\[[\w ./-]+\] )?(?:[a-zA-Z_][\w$-]*(?:\.|::))*[\w$-]+(?:\[\w+\])? - ",
        " - ",
    ),
    _rule(
        "level-target",
        LEVEL_FIRST,
        rf"{_LEVEL} +(?:ThreadId\(\d+\) )?(?:[a-z_]\w*(?:\.|::))+[a-z_]\w*: (?:{_SOURCE}:\d+: )?",
        ": ",
    ),
    _rule("logger-dash", _LETTER + "_", rf"[\w.$/-]+(?:\[\d+\])? - {_LEVEL} +- ?", " - "),
    _rule("logger-dash-place", _LETTER + "_", rf"[\w.$/-]+ - {_LEVEL} - {_PLACE} - ", " - "),
    _rule("logger-pid", _LETTER + "_", rf"[\w.]+ \d+ {_LEVEL} +", " ", more=True),
    _rule("logger-bracket", _LETTER + "_", rf"[\w.$-]+ \[?{_LEVEL}\]? *(?::|-)? ?(?=\S|$)", " "),
    _rule("place-pipe", _LETTER + "_", r"[\w.<>]+:[\w<>.]+:\d+ - ", " - "),
    _rule("place", _LETTER + "_", rf"{_SOURCE}:\d+[\]:](?: |$)", ":"),
    _rule("logger-pipe", _LETTER + "_", rf"[\w.$-]+ \| {_LEVEL} +\| ", "| "),
    _rule("host-ident", _LETTER + _DIGIT, r"(?P<host>[\w.-]+) (?P<writer>[\w./@()-]+\[\d+\]): ?", "]: "),
    _rule("host-kernel", _LETTER + _DIGIT, r"(?P<host>[\w.-]+) (?P<writer>kernel|systemd): ", ": "),
    _rule("ident", _LETTER, r"(?P<writer>[\w./@-]+\[[\w.-]+\]): ", "]: "),
    _rule("pid-level", _DIGIT, rf"\d+ {_LEVEL} +", " "),
    _rule("level-close", "-", rf"- {_LEVEL} - ", "- "),
)
"""What may follow a time or a level that a logger wrote."""
