"""What varies between two runs of one fault: names, sizes, wrapping and layout, all chosen by one seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Chain(StrEnum):
    """How an app hands on what it caught."""

    PLAIN = "plain"  # nothing catches it
    CAUSE = "cause"  # raise … from exc
    CONTEXT = "context"  # raise … while handling
    NOTE = "note"  # add_note, then raise
    LOGGED = "logged"  # log.exception, then sys.exit
    RETRY = "retry"  # three attempts with a warning each, then raise
    FUTURE = "future"  # raised again by a thread pool's future
    GROUP = "group"  # an asyncio.TaskGroup makes an ExceptionGroup of it


@dataclass(frozen=True, slots=True)
class Layer:
    """One caller of the failing function: file below the app's root, class (or none) and function."""

    file: str
    owner: str | None
    function: str


@dataclass(frozen=True, slots=True)
class Layout:
    """An app: folder, entry file, callers at start and at a request (outermost first), the failing function's names."""

    root: str
    entry: str
    layers: tuple[Layer, ...]
    request_layers: tuple[Layer, ...]
    core_file: str
    load_name: str
    infer_name: str
    prepare_name: str
    error: str


LAYOUTS = (
    Layout(
        "opt/inference-api",
        "main.py",
        (
            Layer("app/server.py", None, "create_app"),
            Layer("app/lifespan.py", None, "startup"),
            Layer("app/registry.py", "ModelRegistry", "acquire"),
        ),
        (
            Layer("app/routes.py", None, "post_predict"),
            Layer("app/batching.py", "Batcher", "flush"),
            Layer("app/pool.py", None, "submit"),
        ),
        "app/backends/engine.py",
        "load_model",
        "predict",
        "prepare_inputs",
        "ModelUnavailable",
    ),
    Layout(
        "srv/ranker",
        "serve.py",
        (
            Layer("ranker/service.py", "RankingService", "start"),
            Layer("ranker/pipeline.py", "Pipeline", "build"),
        ),
        (Layer("ranker/http.py", "RankHandler", "do_rank"), Layer("ranker/candidates.py", None, "score_candidates")),
        "ranker/nn/session.py",
        "open_session",
        "score_batch",
        "featurize",
        "RankerError",
    ),
    Layout(
        "home/svc-model/deploy",
        "worker.py",
        (
            Layer("jobs/consumer.py", "Consumer", "run_once"),
            Layer("jobs/handlers.py", None, "handle_message"),
            Layer("jobs/steps.py", None, "execute_step"),
        ),
        (
            Layer("jobs/consumer.py", "Consumer", "poll"),
            Layer("jobs/handlers.py", None, "on_predict"),
            Layer("jobs/batch.py", None, "process_batch"),
        ),
        "jobs/model_io.py",
        "restore_weights",
        "run_inference",
        "encode_payload",
        "StepFailed",
    ),
    Layout(
        "usr/src/app",
        "run.py",
        (Layer("handler.py", "ModelHandler", "initialize"),),
        (Layer("handler.py", "ModelHandler", "handle"), Layer("base.py", "BaseHandler", "inference")),
        "model.py",
        "init_model",
        "forward",
        "preprocess",
        "HandlerInitError",
    ),
    Layout(
        "app",
        "entrypoint.py",
        (
            Layer("core/bootstrap.py", None, "bootstrap"),
            Layer("core/container.py", "Container", "resolve"),
            Layer("core/providers.py", "EngineProvider", "provide"),
            Layer("core/lazy.py", "Lazy", "get"),
        ),
        (
            Layer("core/api.py", None, "infer_endpoint"),
            Layer("core/router.py", "Router", "dispatch"),
            Layer("core/execution.py", "Execution", "execute"),
        ),
        "core/engine/torch_engine.py",
        "warm",
        "infer_sync",
        "tokenize_request",
        "ProviderError",
    ),
    Layout(
        "data/deploy/embedder/current",
        "cli.py",
        (
            Layer("embedder/cli.py", None, "serve_command"),
            Layer("embedder/runtime.py", "Runtime", "boot"),
        ),
        (Layer("embedder/cli.py", None, "encode_command"), Layer("embedder/runtime.py", "Runtime", "encode")),
        "embedder/artifacts.py",
        "materialize",
        "embed",
        "to_features",
        "EmbedderNotReady",
    ),
    Layout(
        "var/lib/scoring",
        "scoring_main.py",
        (
            Layer("scoring/daemon.py", "ScoringDaemon", "main_loop"),
            Layer("scoring/slots.py", "Slot", "fill"),
            Layer("scoring/compat.py", None, "with_backend"),
        ),
        (
            Layer("scoring/daemon.py", "ScoringDaemon", "tick"),
            Layer("scoring/queue.py", None, "drain"),
            Layer("scoring/scorer.py", "Scorer", "__call__"),
        ),
        "scoring/backend_cpu.py",
        "attach",
        "score",
        "normalise",
        "SlotError",
    ),
    Layout(
        "mnt/releases/2025.3/vision",
        "start.py",
        (
            Layer("vision/api.py", "DetectorAPI", "setup"),
            Layer("vision/factory.py", None, "build_detector"),
        ),
        (Layer("vision/api.py", "DetectorAPI", "detect_endpoint"), Layer("vision/stream.py", None, "next_frame")),
        "vision/detector.py",
        "from_checkpoint",
        "detect",
        "letterbox",
        "DetectorError",
    ),
)
MODELS = (
    "resnet50-v2",
    "fraud-scorer",
    "bert-intent",
    "yolo-shelf",
    "e5-small-de",
    "whisper-tiny-ft",
    "tabnet-churn",
    "llama-guard-mini",
    "ner_en_core",
    "doc-layout-b0",
    "sbert-tickets",
    "vit-quality",
    "deepar-demand",
    "clip-catalog",
    "reranker-v3",
)
STEMS = ("model", "weights", "checkpoint", "pytorch_model", "encoder", "best", "epoch_17", "export", "final", "graph")
VENVS = (
    "/usr/local",
    "/opt/venv",
    "/opt/conda",
    "/home/svc-model/.venv",
    "/usr/src/app/.venv",
    "/root/miniconda3/envs/serve",
)
LOG_FORMATS = (
    "%(asctime)s %(levelname)s %(name)s: %(message)s",
    "%(levelname)s:%(name)s:%(message)s",
    "[%(asctime)s] [%(process)d] [%(levelname)s] %(message)s",
    "%(asctime)s - %(name)s - %(levelname)s - %(message)s",
    "%(asctime)s | %(levelname)-8s | %(module)s:%(funcName)s:%(lineno)d - %(message)s",
    "%(levelname).1s%(asctime)s %(threadName)s %(filename)s:%(lineno)d] %(message)s",
)
OPERATORS = ("MatMul", "Gemm", "Add", "Concat", "Reshape", "Conv", "Mul", "Sub")


@dataclass(frozen=True, slots=True)
class Variation:
    """The values of one run. ``batch``, ``width`` and ``other`` are dimensions, ``width != other``; ``mib`` a size."""

    seed: int
    model: str
    stem: str
    operator: str
    batch: int
    width: int
    other: int
    mib: int
    depth: int
    chain: Chain
    layout: Layout
    log_format: str
    venv: str
    chatty: bool

    @classmethod
    def choose(cls, seed: int, salt: str = "") -> Variation:
        """Choose by ``seed``; ``salt`` (the fault's id) keeps two faults of one seed from sharing their values."""
        rng = random.Random(f"{salt}:{seed}")
        layout = rng.choice(LAYOUTS)
        width, other = rng.sample((3, 5, 8, 17, 32, 64, 96, 128, 224, 256, 384, 512, 768, 1024), 2)
        return cls(
            seed=seed,
            model=rng.choice(MODELS),
            stem=rng.choice(STEMS),
            operator=rng.choice(OPERATORS),
            batch=rng.choice((1, 2, 3, 4, 8, 16)),
            width=width,
            other=other,
            mib=rng.choice((192, 256, 384, 512, 640, 1024)),
            depth=rng.randint(0, len(layout.layers)),
            chain=rng.choices(tuple(Chain), (6, 4, 2, 1, 3, 2, 2, 1))[0],
            layout=layout,
            log_format=rng.choice(LOG_FORMATS),
            venv=rng.choice(VENVS),
            chatty=rng.random() < 0.5,
        )
