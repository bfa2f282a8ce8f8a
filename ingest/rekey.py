"""What another way of keying would change: which signature each variant gets, and which cluster each signature.

``survey`` signs every variant again (slow, nothing but reading), ``plan`` works out from it what becomes of signatures
and clusters as they stand now (quick). ``rekey_write`` writes a plan. Neither raw text nor crashes are touched: a crash
points at its variant, and only variants get another signature.

Whoever was a member stays one. A signature that parts leaves all its parts in its cluster; where signatures of several
clusters become one, it goes to the cluster that most of its crashes were in (then the lowest number), and the plan says
so. A cluster that is left empty is merged into the one that most of its crashes went to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.decisions import last, links
from crashpath.ingest.keying import Keying
from crashpath.ingest.model import Frame, Signature, Variant
from crashpath.ingest.storable import storable
from crashpath.ingest.tables import Crash, CrashDaily
from crashpath.ingest.tables import Signature as Row
from crashpath.ingest.tables import Variant as VariantRow

_FETCH = 2_000


@dataclass(frozen=True, slots=True)
class Flow:
    """Variants of the signature ``old`` that get the signature ``new`` (which may be the same), and their crashes."""

    old: str
    new: str
    variants: int
    crashes: int


@dataclass(frozen=True, slots=True)
class Survey:
    """Which signatures variants get: ``flows`` that touch a change, ``moved`` as (variant, old, new).

    ``signed`` has the new signatures and those whose text is another one; ``algorithms`` counts what the store's
    signatures (those with variants) are keyed by.
    """

    keying: str
    algorithms: tuple[tuple[str, int], ...]
    signatures: int
    flows: tuple[Flow, ...]
    moved: tuple[tuple[int, str, str], ...]
    signed: Mapping[str, Signature]

    @property
    def changed(self) -> bool:
        """Whether any signature gets another id or text."""
        return bool(self.signed)

    @property
    def relabelled(self) -> bool:
        """Whether a signature says that it is keyed in another way."""
        return any(name != self.keying for name, _ in self.algorithms)


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """A signature as it will be: what it is made of, most crashes first, and the cluster that it goes to.

    ``left`` are clusters that parts of it come from and that it does not go to.
    """

    id: str
    made_of: tuple[Flow, ...]
    cluster: int | None
    left: tuple[int, ...]
    exemplar: bool

    @property
    def main(self) -> str:
        """The old signature that it inherits from."""
        return self.made_of[0].old

    @property
    def crashes(self) -> int:
        """Crashes of all its parts."""
        return sum(flow.crashes for flow in self.made_of)


@dataclass(frozen=True, slots=True)
class Ended:
    """A cluster that is left without members, and the one that most of its crashes go to."""

    cluster: int
    into: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a re-key changes. ``against`` are pairs of old signatures that people told apart and that become one.

    ``mark`` is the last decision on members that was seen: the plan holds until there is a later one.
    """

    survey: Survey
    signatures: tuple[Rekeyed, ...]
    mains: Mapping[str, str]
    parted: tuple[str, ...]
    clusters: tuple[int, ...]
    ended: tuple[Ended, ...]
    against: tuple[tuple[str, str, str], ...]
    mark: int

    @property
    def renamed(self) -> tuple[Rekeyed, ...]:
        """Signatures that only get another id (or another text under the same one)."""
        parted = set(self.parted)
        return tuple(one for one in self.signatures if len(one.made_of) == 1 and one.main not in parted)

    @property
    def together(self) -> tuple[Rekeyed, ...]:
        """Signatures that several old ones go into."""
        return tuple(one for one in self.signatures if len(one.made_of) > 1)

    @property
    def stay(self) -> int:
        """How many signatures stay as they are."""
        return self.survey.signatures - len(self.mains)


def survey(session: Session, keying: Keying) -> Survey:
    """Sign all variants again and compare with what is stored."""
    texts = dict(session.execute(select(Row.id, Row.text)).all())
    sizes = dict(session.execute(select(Crash.variant_id, func.count()).group_by(Crash.variant_id)).all())
    signed: dict[str, Signature] = {}
    moved: list[tuple[int, str, str]] = []
    variants: Counter[tuple[str, str]] = Counter()
    crashes: Counter[tuple[str, str]] = Counter()
    for number, old, variant in _variants(session):
        signature = keying.sign(variant)
        variants[old, signature.id] += 1
        crashes[old, signature.id] += sizes.get(number, 0)
        if signature.id != old:
            moved.append((number, old, signature.id))
            signed[signature.id] = signature
        elif storable(signature.text) != texts[old]:
            signed[old] = signature
    touched = {old for _, old, _ in moved}
    flows = [
        Flow(old, new, n, crashes[old, new])
        for (old, new), n in sorted(variants.items())
        if old in touched or new in signed
    ]
    algorithms = session.execute(
        select(Row.algorithm, func.count())
        .where(select(VariantRow.id).where(VariantRow.signature_id == Row.id).exists())
        .group_by(Row.algorithm)
        .order_by(Row.algorithm)
    )
    named = tuple((name, n) for name, n in algorithms)
    return Survey(
        keying.id, named, sum(n for _, n in named), tuple(_whole(session, flows)), tuple(moved), signed
    )  # fmt: skip


def _variants(session: Session) -> Iterable[tuple[int, str, Variant]]:
    columns = (
        VariantRow.id, VariantRow.signature_id, VariantRow.chain, VariantRow.root_type, VariantRow.root_message,
        VariantRow.frames,
    )  # fmt: skip
    rows = session.execute(select(*columns).order_by(VariantRow.id).execution_options(yield_per=_FETCH))
    for number, old, chain, root_type, message, frames in rows:
        kept = tuple(Frame(str(f[0]), str(f[1]), bool(f[2])) for f in frames)
        yield number, old, Variant(tuple(chain), root_type, message, kept)


def _whole(session: Session, flows: Sequence[Flow]) -> Iterable[Flow]:
    """Give crashes that were pruned, and that only the daily counts know, to the largest part of their signature."""
    daily = select(CrashDaily.signature_id, func.sum(CrashDaily.crashes)).group_by(CrashDaily.signature_id)
    left = Counter({one: int(n) for one, n in session.execute(daily)})
    for flow in flows:
        left[flow.old] -= flow.crashes
    main = main_parts(flows)
    for flow in flows:
        more = max(0, left[flow.old]) if main[flow.old] == flow.new else 0
        yield Flow(flow.old, flow.new, flow.variants, flow.crashes + more)


def main_parts(flows: Iterable[Flow]) -> dict[str, str]:
    """Return, for each old signature, the new one that most of its crashes (then variants) go to."""
    parts: dict[str, list[Flow]] = defaultdict(list)
    for flow in flows:
        parts[flow.old].append(flow)
    return {old: min(several, key=lambda f: (-f.crashes, -f.variants, f.new)).new for old, several in parts.items()}


def plan(session: Session, found: Survey) -> Plan:
    """Work out what becomes of signatures and clusters as they stand now."""
    rows = {
        one: (cluster, bool(exemplar))
        for one, cluster, exemplar in session.execute(select(Row.id, Row.cluster_id, Row.is_exemplar))
    }
    into: dict[str, list[Flow]] = defaultdict(list)
    parts: dict[str, set[str]] = defaultdict(set)
    for flow in found.flows:
        parts[flow.old].add(flow.new)
        if flow.new in found.signed:
            into[flow.new].append(flow)
    new = tuple(_rekeyed(one, flows, rows) for one, flows in sorted(into.items()))
    mains = {old: one for old, one in main_parts(found.flows).items() if parts[old] != {old} or old in found.signed}
    homes = [rows[old][0] for old in mains] + [cluster for one in new for cluster in (one.cluster, *one.left)]
    clusters = tuple(sorted({number for number in homes if number is not None}))
    return Plan(
        found, new, mains, tuple(sorted(old for old, several in parts.items() if len(several) > 1)), clusters,
        _ended(new, parts, rows), _against(session, parts), last(session),
    )  # fmt: skip


def _rekeyed(new: str, flows: Sequence[Flow], rows: Mapping[str, tuple[int | None, bool]]) -> Rekeyed:
    mass: Counter[int] = Counter()
    for flow in flows:
        cluster = rows[flow.old][0]
        if cluster is not None:
            mass[cluster] += flow.crashes
    home = min(mass, key=lambda number: (-mass[number], number)) if mass else None
    # What a signature inherits comes from a part that was in its cluster already.
    order = sorted(flows, key=lambda f: (rows[f.old][0] != home, -f.crashes, -f.variants, f.old))
    exemplar = any(rows[flow.old] == (home, True) for flow in flows)
    return Rekeyed(new, tuple(order), home, tuple(sorted(set(mass) - {home})), exemplar)


def _ended(
    new: Sequence[Rekeyed], parts: Mapping[str, set[str]], rows: Mapping[str, tuple[int | None, bool]]
) -> tuple[Ended, ...]:
    here = {one.cluster for one in new}
    changed = {one.id for one in new}
    here |= {cluster for one, (cluster, _) in rows.items() if one not in changed and one in parts.get(one, {one})}
    went: dict[int, Counter[int]] = defaultdict(Counter)
    for one in new:
        for flow in one.made_of:
            cluster = rows[flow.old][0]
            if cluster is not None and cluster not in here and one.cluster is not None:
                went[cluster][one.cluster] += flow.crashes
    return tuple(
        Ended(cluster, min(targets, key=lambda number: (-targets[number], number)))
        for cluster, targets in sorted(went.items())
    )


def _against(session: Session, parts: Mapping[str, set[str]]) -> tuple[tuple[str, str, str], ...]:
    """Pairs that people told apart and that get one signature, which can only be in one place."""
    out: list[tuple[str, str, str]] = []
    for pair in links(session).cannot:
        if len(pair) == 2:
            one, other = sorted(pair)
            out += [(one, other, new) for new in parts.get(one, {one}) & parts.get(other, {other})]
    return tuple(sorted(out))
