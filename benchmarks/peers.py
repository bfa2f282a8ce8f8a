"""The same logs end to end through crashpath and through its peers, in one run and with the same encoder.

Each way is a process of its own on one thread, from the start of the interpreter to the last group, libraries and
encoder loaded and what they compile compiled. crashpath does what ``group`` does: parse, mask, sign, embed, propose by
UMAP and HDBSCAN, test the cohesion. BERTopic has its defaults and the loaded MiniLM. Drain3 has the same masks as
crashpath, and its template of a log's last line that tells of an error, or of the log as a whole, is the group.
What a way leaves unassigned is a group of one for the scores.

Data: a night's mix (``mix.py``), the real cases, and the exceptions of Defects4J. ``≥ 2`` is BCubed over true groups
of two and more; seconds are those of the processor, since the machine may be shared.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mix import LOGS, SEED, mixed
from processes import environment
from results_file import write_results
from tables import evaluation, table

CHILD_SECONDS = 7200.0
ERROR = re.compile(r"error|exception|fatal|fail|abort|panic|killed|timed? ?out|denied|refused", re.IGNORECASE)
FASTER = 20.0
"""How much less processor time than BERTopic's crashpath is to need on the whole mix."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A group for each log in their order, ``None`` where it was left unassigned, and the seconds of each stage."""

    groups: list[Hashable]
    stages: dict[str, float]


class Laps:
    """Processor seconds of stages that follow each other, from the start of the process."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._since = 0.0

    def end(self, stage: str) -> None:
        """End a stage that began where the one before it ended."""
        now = time.process_time()
        self.spent[stage] = self.spent.get(stage, 0.0) + now - self._since
        self._since = now


def crashpath_way(texts: Sequence[str], *, rules_on: bool = True) -> Answer:
    """What ``crashpath group --jsonl`` does, without the classes."""
    laps = Laps()
    from crashpath.clustering.encoder import Vectors
    from crashpath.clustering.group import group
    from crashpath.clustering.items import item_of
    from crashpath.clustering.propose import Proposal, UmapHdbscan
    from crashpath.clustering.runtime_encoder import open_encoder
    from crashpath.clustering.vectors import MemoryCache, embed
    from crashpath.ingest.analyse import Analyser
    from crashpath.ingest.rules import Rules, load_rules
    from crashpath.ingest.whole import SplitOptions, one_record

    rules = load_rules() if rules_on else Rules(())
    analyser = Analyser(rules, redacting=False)
    options = SplitOptions(as_of=datetime(2026, 12, 1, tzinfo=UTC), is_failure=rules.is_failure)
    laps.end("load")
    analyses = [analyser.analyse(one_record(t, source=f"{i}", options=options)) for i, t in enumerate(texts)]
    laps.end("parse, mask, sign")
    items = [item_of(analysis, id=f"{i:06}") for i, analysis in enumerate(analyses)]
    laps.end("terms")
    encoder, cache = open_encoder(), MemoryCache()
    embed([item.text for item in {item.signature: item for item in items}.values()], encoder, cache)
    laps.end("embed")

    def proposer(vectors: Vectors) -> Proposal:
        laps.end("distances")
        proposal = UmapHdbscan()(vectors)
        laps.end("UMAP, HDBSCAN")
        return proposal

    grouping = group(items, encoder, cache=cache, proposer=proposer)
    laps.end("cohesion, nearest")
    return Answer([record.cluster for record in grouping.records], laps.spent)


def bertopic_way(texts: Sequence[str]) -> Answer:
    """BERTopic as it comes, but for the encoder."""
    laps = Laps()
    import numpy as np
    from bertopic import BERTopic
    from sentence_transformers import SentenceTransformer

    from crashpath.clustering.encoder import minilm_folder

    model = SentenceTransformer(str(minilm_folder()), device="cpu", local_files_only=True)
    laps.end("load")
    np.random.seed(SEED % 2**32)
    topics, _ = BERTopic(embedding_model=model).fit_transform(list(texts))
    laps.end("fit")
    return Answer([None if topic < 0 else int(topic) for topic in topics], laps.spent)


def tfidf_way(texts: Sequence[str]) -> Answer:
    """TF-IDF of words, 100 dimensions of it, HDBSCAN with its defaults."""
    laps = Laps()
    from hdbscan import HDBSCAN
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    laps.end("load")
    matrix = TfidfVectorizer(sublinear_tf=True).fit_transform(texts)
    reduced = normalize(TruncatedSVD(min(100, min(matrix.shape) - 1), random_state=SEED).fit_transform(matrix))
    laps.end("vectors")
    labels = HDBSCAN(core_dist_n_jobs=1).fit_predict(reduced)
    laps.end("HDBSCAN")
    return Answer([None if label < 0 else int(label) for label in labels], laps.spent)


def drain_way(texts: Sequence[str], *, whole: bool) -> Answer:
    """Drain3 with its defaults and the masks of crashpath; the template is the group."""
    laps = Laps()
    from drain3 import TemplateMiner
    from drain3.template_miner_config import TemplateMinerConfig
    from speed import masking_instructions

    config = TemplateMinerConfig()
    config.masking_instructions = masking_instructions()
    miner = TemplateMiner(config=config)
    laps.end("load")
    messages = [" ".join(text.split()) if whole else telling(text) for text in texts]
    groups: list[Hashable] = [int(miner.add_log_message(message)["cluster_id"]) for message in messages]
    laps.end("match")
    return Answer(groups, laps.spent)


def telling(text: str) -> str:
    """Return the last line that tells of an error, or the last line that is not blank."""
    lines = [line for line in text.split("\n") if line.strip()] or [""]
    return next((line for line in reversed(lines) if ERROR.search(line)), lines[-1])


WAYS: dict[str, Callable[[Sequence[str]], Answer]] = {
    "crashpath": crashpath_way,
    "  rules off": lambda texts: crashpath_way(texts, rules_on=False),
    "BERTopic": bertopic_way,
    "TF-IDF + HDBSCAN": tfidf_way,
    "Drain3, error line": lambda texts: drain_way(texts, whole=False),
    "Drain3, whole log": lambda texts: drain_way(texts, whole=True),
}


def high_water() -> int:
    """Return the peak of this process in KiB; ``getrusage`` would also know of the one that it was forked from."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0])


def child(way: str, texts: Path, out: Path) -> None:
    """Run one way in this process and write down what it said and what it cost."""
    warnings.simplefilter("ignore")
    answer = WAYS[way](json.loads(texts.read_text(encoding="utf-8")))
    cost = {
        "seconds": time.process_time(),
        "peak_mib": high_water() / 1024,
        "stages": {name: round(spent, 2) for name, spent in answer.stages.items()},
    }
    out.write_text(json.dumps({"groups": answer.groups, "cost": cost}), encoding="utf-8")


def measured(way: str, texts: Path, truth: Sequence[str]) -> dict[str, Any]:
    """Run one way in a process of its own; return its scores and costs."""
    out = texts.with_name("out.json")
    command = [sys.executable, __file__, "--child", way, str(texts), str(out)]
    started = time.perf_counter()
    env = environment() | {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=CHILD_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{way}: exit {done.returncode}: {done.stderr[-2000:]}")
    wall = time.perf_counter() - started
    said = json.loads(out.read_text(encoding="utf-8"))
    groups = [f"alone {i}" if group is None else group for i, group in enumerate(said["groups"])]
    unassigned = sum(group is None for group in said["groups"]) / len(groups)
    costs = {"groups": len(set(groups)), "unassigned": unassigned, "wall_seconds": wall, **said["cost"]}
    return scores(groups, truth) | costs


def scores(found: Sequence[Hashable], truth: Sequence[Hashable]) -> dict[str, float]:
    """BCubed, over all logs and over true groups of two and more, and pairs."""
    from crashpath.clustering.metrics import bcubed, multi, pairs

    every, several, both = bcubed(found, truth), bcubed(*multi(found, truth)), pairs(found, truth)
    return {
        "bcubed": every.f1,
        "precision": every.precision,
        "recall": every.recall,
        "bcubed_multi": several.f1,
        "precision_multi": several.precision,
        "recall_multi": several.recall,
        "pair_f1": both.f1,
        "pair_precision": both.precision,
        "pair_recall": both.recall,
    }


SCORES = (("BCubed", "bcubed"), ("P", "precision"), ("R", "recall"), ("≥ 2", "bcubed_multi"), ("pairs", "pair_f1"))


def compare(title: str, texts: Sequence[str], truth: Sequence[str], ways: Sequence[str]) -> dict[str, Any]:
    """Print the table of one set of logs and return its figures."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="crashpath-bench-") as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(list(texts)), encoding="utf-8")
        for way in ways:
            figures[way] = measured(way, file, truth)
    rows = [
        (
            way,
            f"{got['groups']:,}",
            *(f"{got[key]:.3f}" for _, key in SCORES),
            f"{got['unassigned']:.0%}",
            f"{got['seconds']:.0f}",
            f"{got['peak_mib']:,.0f}",
        )
        for way, got in figures.items()
    ]
    lines = sum(text.count("\n") + 1 for text in texts)
    table(
        f"{title}: {len(texts):,} logs, {lines:,} lines, {len(set(truth))} true groups",
        ("way", "groups", *(name for name, _ in SCORES), "none", "s", "MiB"),
        rows,
    )
    if "crashpath" in figures:
        stages = figures["crashpath"]["stages"]
        print("crashpath's seconds: " + " · ".join(f"{name} {spent:.1f}" for name, spent in stages.items()))
    return {"logs": len(texts), "true_groups": len(set(truth)), "ways": figures}


def verdict(figures: dict[str, Any]) -> dict[str, Any]:
    """Say how crashpath stands to BERTopic on the mix: the ratio of seconds, and the metrics on which it is worse."""
    mine, peer = figures["ways"].get("crashpath"), figures["ways"].get("BERTopic")
    if mine is None or peer is None:
        return {}
    worse = [key for key in scores(["a"], ["a"]) if mine[key] < peer[key]]
    worse += ["unassigned"] if mine["unassigned"] > peer["unassigned"] else []
    ratio = peer["seconds"] / mine["seconds"]
    print(f"crashpath is {ratio:.1f} times as fast as BERTopic; worse on: {', '.join(worse) or 'no metric'}")
    return {"faster": ratio, "worse_on": worse}


def main(arguments: Sequence[str] = ()) -> int:
    """Print the tables and write the figures; 1 where the whole mix is not as fast or as good as it is to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=LOGS, help="logs of the mix; 0 leaves it out")
    parser.add_argument("--repeated", type=float, default=0.0, help="share that repeats another but for its clock")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--way", action="append", choices=tuple(WAYS), help="only these")
    parser.add_argument("--mix-only", action="store_true", help="leave the evaluation data out")
    parser.add_argument("--child", nargs=3, metavar=("WAY", "TEXTS", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child[0], Path(options.child[1]), Path(options.child[2]))
        return 0
    ways, figures = options.way or list(WAYS), dict[str, Any]()
    if options.logs:
        logs = mixed(options.logs, options.seed, options.repeated)
        found = compare("A night's mix", [log.text for log in logs], [log.fault for log in logs], ways)
        figures["mix"] = {"seed": options.seed, "repeated": options.repeated} | found | verdict(found)
    from tiers import defects4j, real_cases

    read = {"real-cases": ("cases.jsonl", real_cases), "defects4j": ("trigger_traces.jsonl", defects4j)}
    for name, (file, reader) in {} if options.mix_only else read.items():
        if path := evaluation(name, file):
            cases = reader(path)
            figures[name] = compare(name, [case.text for case in cases], [case.group for case in cases], ways)
    if options.logs == LOGS and options.way is None:
        write_results("peers", figures)
    mix = figures.get("mix", {})
    return int(options.logs >= LOGS and (bool(mix.get("worse_on")) or mix.get("faster", FASTER) < FASTER))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
