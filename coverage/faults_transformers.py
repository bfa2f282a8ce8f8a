"""Faults of transformers models: architectures, weights, configurations, extra packages, lengths."""

from __future__ import annotations

import json
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate, write_garbage
from crashpath.coverage.fault import Arena, Fault

_CONFIG = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
}


def _folder(arena: Arena, **settings: object) -> Path:
    """Write a model folder that holds a configuration alone, and return it."""
    path = arena.path("models/{model}/config.json")
    path.write_text(json.dumps({**_CONFIG, **settings}, indent=2), encoding="utf-8")
    return path.parent


def _serve_model(arena: Arena, folder: Path, options: str = "") -> None:
    kind = arena.rng.choice(("AutoModel", "AutoModelForSequenceClassification"))
    body = f"model = {kind}.from_pretrained(folder{options})\nreturn model.eval()"
    arena.serve(Code.of(body, f"from transformers import {kind}", folder=folder))


def _architecture(arena: Arena) -> None:
    kind = arena.rng.choice(("mllama4", "qwen9_moe", "gemma7n", "phi6_vision", "retnet3", "deepbert_v9"))
    _serve_model(arena, _folder(arena, model_type=kind, architectures=["NextForCausalLM"]))


def _weights_missing(arena: Arena) -> None:
    _serve_model(arena, _folder(arena))


def _weights_broken(arena: Arena) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    folder = _folder(arena)
    path = folder / "model.safetensors"
    save_file({"embeddings.word_embeddings.weight": np.ones((64, 32), dtype=np.float32)}, str(path), {"format": "pt"})
    if arena.rng.random() < 0.5:
        truncate(path, arena.rng.uniform(0.4, 0.9))
    else:
        write_garbage(path, 4096, arena.rng)
    _serve_model(arena, folder)


def _config_broken(arena: Arena) -> None:
    folder = _folder(arena)
    truncate(folder / "config.json", arena.rng.uniform(0.3, 0.9))
    _serve_model(arena, folder)


def _package_missing(arena: Arena) -> None:
    options = arena.rng.choice(
        (
            ', device_map="auto"',
            ', attn_implementation="flash_attention_2"',
            ', gguf_file="model.gguf"',
            ', quantization_config={"quant_method": "gptq", "bits": 4}',
            ', quantization_config={"quant_method": "awq", "bits": 4}',
            ', quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}',
        )
    )
    folder = _folder(arena)
    (folder / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    _serve_model(arena, folder, options)


def _sequence_length(arena: Arena) -> None:
    length = arena.rng.choice((17, 24, 48, 64))
    arena.serve(
        Code.of(
            """
            model = BertModel(BertConfig(**config)).eval()
            with torch.no_grad():
                return model(input_ids=torch.ones(batch, length, dtype=torch.long))
            """,
            "import torch\nfrom transformers import BertConfig, BertModel",
            phase="infer",
            config={key: value for key, value in _CONFIG.items() if key not in ("model_type", "architectures")},
            batch=arena.variation.batch,
            length=length,
        )
    )


FAULTS = (
    Fault(
        "transformers-architecture",
        "unsupported_op",
        "load",
        "transformers",
        "load an architecture it does not know",
        _architecture,
    ),
    Fault(
        "transformers-weights-missing",
        "load_corrupt",
        "load",
        "transformers",
        "load a folder without weights",
        _weights_missing,
    ),
    Fault(
        "transformers-weights-broken",
        "load_corrupt",
        "load",
        "transformers",
        "load a folder with broken weights",
        _weights_broken,
    ),
    Fault(
        "transformers-config-broken",
        "load_corrupt",
        "load",
        "transformers",
        "load a configuration that was cut off",
        _config_broken,
    ),
    Fault(
        "transformers-package-missing",
        "dependency",
        "load",
        "transformers",
        "ask for what needs a package that is absent",
        _package_missing,
    ),
    Fault(
        "transformers-sequence-length",
        "shape_inference",
        "infer",
        "transformers",
        "feed more positions than there are",
        _sequence_length,
    ),
)
