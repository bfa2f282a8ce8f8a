"""What each tier of grouping adds: signature alone, embedding alone, both.

On the duplicates of real-cases, and on the stack traces of Defects4J whose head is not an assertion (tests of one bug
are one group). Beside them what a plain distance threshold would have done, and an exception's class with the top
frame of the project. Precision and recall are BCubed's; ``≥ 2`` is BCubed over groups of two and more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from results_file import write_results
from tables import FileCache, evaluation, table

from crashpath.clustering.affinity import Space
from crashpath.clustering.encoder import minilm
from crashpath.clustering.group import group, nearest_rows
from crashpath.clustering.items import Item, item_of
from crashpath.clustering.metrics import bcubed, multi, pairs, rr_at_1
from crashpath.clustering.propose import Linkage, Proposal, UmapHdbscan
from crashpath.clustering.terms import terms_of
from crashpath.clustering.train import analyse_text
from crashpath.clustering.vectors import embed
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.rules import Rules, load_rules

ASSERTIONS = re.compile(r"Assert|ComparisonFailure")
NO_TERMS = terms_of("")
THRESHOLDS = (0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class Case:
    """One record with the name of its true group, its duplicates and the records that must be kept apart from it."""

    id: str
    text: str
    group: str
    duplicates: frozenset[str] = frozenset()
    apart: tuple[str, ...] = ()


def real_cases(path: Path) -> list[Case]:
    """Read the cases: a group is a case and its duplicates."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    out = []
    for row in rows:
        duplicates = frozenset(row.get("near_duplicates") or ())
        group_name = min({row["id"]} | duplicates)
        out.append(Case(row["id"], row["log"], group_name, duplicates, tuple(row.get("not_same") or ())))
    return out


def defects4j(path: Path) -> list[Case]:
    """Read the traces whose head is not an assertion."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [row for row in rows if not ASSERTIONS.search(row["head"].partition(":")[0])]
    return [Case(f"d{i:04}", row["text"], row["bug"]) for i, row in enumerate(kept)]


def items(cases: Sequence[Case], rules: Rules) -> list[Item]:
    """Analyse every case as one record."""
    analyser = Analyser(rules, redacting=False)
    return [item_of(analyse_text(case.text, case.id, analyser, rules), id=case.id) for case in cases]


def labels(proposal: Proposal) -> list[int]:
    """Return a group number a row; noise is a group of one."""
    groups = (*proposal.groups, *((row,) for row in proposal.noise))
    name = {row: i for i, rows in enumerate(groups) for row in rows}
    return [name[row] for row in range(proposal.points)]


def compare(title: str, cases: Sequence[Case], rules: Rules) -> dict[str, Any]:
    """Print the table of one data set and return its figures."""
    subjects, cache, encoder = items(cases, rules), FileCache(), minilm()
    order = sorted(range(len(subjects)), key=lambda i: subjects[i].signature + subjects[i].id)
    vectors, _ = embed([subjects[i].text for i in order], encoder, cache)
    back = {row: k for k, row in enumerate(order)}
    both = group(subjects, encoder, cache=cache)

    def alone(proposal: Proposal) -> list[Hashable]:
        found = labels(proposal)
        return [found[back[i]] for i in range(len(subjects))]

    ways: dict[str, list[Hashable]] = {
        "class + top project frame": [(item.kind, item.frames[:1]) for item in subjects],
        "1 signature alone": [item.signature for item in subjects],
        "2 embedding alone (UMAP + HDBSCAN)": alone(UmapHdbscan()(vectors)),
        **{f"  plain threshold {cut} on cosine": alone(Linkage(cut)(vectors)) for cut in THRESHOLDS},
        "  both, threshold in place of UMAP": [
            record.cluster for record in group(subjects, encoder, cache=cache, proposer=Linkage(0.3)).records
        ],
        "3 both (signature, proposal, cohesion)": [record.cluster for record in both.records],
    }
    truth = [case.group for case in cases]
    figures = {name: scores(found, truth) for name, found in ways.items()}
    table(
        f"{title}, n = {len(cases)}, {len(set(truth))} groups",
        ("way", "groups", "BCubed", "P", "R", "≥ 2", "pair F1"),
        [(name, str(len(set(ways[name]))), *(f"{x:.3f}" for x in f.values())) for name, f in figures.items()],
    )
    print(
        f"UMAP was given {both.proposal.points} signatures; HDBSCAN proposed {len(both.proposal.groups)} groups and "
        f"{len(both.proposal.noise)} noise;\n{both.cohesive} groups of two and more signatures stand"
    )
    return {"n": len(cases), "ways": figures} | nearness(cases, subjects, both.records, cache)


def scores(found: Sequence[Hashable], truth: Sequence[Hashable]) -> dict[str, float]:
    """Return the figures of one way."""
    all_items, several = bcubed(found, truth), bcubed(*multi(found, truth))
    return {
        "bcubed": all_items.f1,
        "precision": all_items.precision,
        "recall": all_items.recall,
        "bcubed_multi": several.f1,
        "pair_f1": pairs(found, truth).f1,
    }


def nearness(
    cases: Sequence[Case], subjects: Sequence[Item], records: Sequence[Any], cache: FileCache
) -> dict[str, Any]:
    """Print RR@1 beside that of the embedding alone, and the pairs with the same words and another cause."""
    duplicates = {case.id: case.duplicates for case in cases}
    if not any(duplicates.values()):
        return {}
    mine = rr_at_1({r.id: r.nearest.id if r.nearest else None for r in records}, duplicates)
    plain: dict[str, float] = {}
    for name, texts in (("raw log", [c.text for c in cases]), ("root text", [s.text for s in subjects])):
        vectors, _ = embed(texts, minilm(), cache)
        near = nearest_rows(Space([Item(c.id, "", NO_TERMS) for c in cases], vectors))
        plain[name] = rr_at_1(
            {c.id: cases[n[0]].id if n else None for c, n in zip(cases, near, strict=True)}, duplicates
        )
    cluster = {r.id: r.cluster for r in records}
    apart = [cluster[case.id] != cluster[other] for case in cases for other in case.apart if other in cluster]
    print(
        f"RR@1 {mine:.3f}; MiniLM on the raw log {plain['raw log']:.3f}, on root text {plain['root text']:.3f}; "
        f"{sum(apart)} of {len(apart)} pairs apart"
    )
    return {"rr1": mine, "rr1_minilm": plain, "apart": sum(apart), "apart_of": len(apart)}


def main() -> None:
    """Print the tables and write the figures."""
    rules = load_rules()
    figures: dict[str, Any] = {}
    if path := evaluation("real-cases", "cases.jsonl"):
        figures["real-cases"] = compare("real-cases", real_cases(path), rules)
    if path := evaluation("defects4j", "trigger_traces.jsonl"):
        figures["defects4j"] = compare("Defects4J, exceptions", defects4j(path), rules)
    write_results("tiers", figures)


if __name__ == "__main__":
    main()
