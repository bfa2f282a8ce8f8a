"""Faults of tokenizers, sentencepiece and the tokenizers of transformers."""

from __future__ import annotations

import json
from pathlib import Path

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import truncate, write_garbage, write_lfs_pointer
from crashpath.coverage.fault import Arena, Fault

_SENTENCE = "the model could not be loaded because its vocabulary is not here and nobody knows why it went"
_WORDS = _SENTENCE.split()


def _tokenizer_file(arena: Arena) -> Path:
    """Train a small BPE tokenizer, save it as tokenizer.json and return the path."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=60 + arena.rng.randint(0, 80), special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(arena.rng.sample(_WORDS, len(_WORDS))) for _ in range(20)], trainer)
    path = arena.path("models/{model}/tokenizer.json")
    tokenizer.save(str(path))
    return path


def _serve_file(arena: Arena, path: Path) -> None:
    body = arena.rng.choice(
        (
            "return Tokenizer.from_file(path)",
            'with open(path, encoding="utf-8") as file:\n    return Tokenizer.from_str(file.read())',
        )
    )
    arena.serve(Code.of(body, "from tokenizers import Tokenizer", path=path))


def _unknown_variant(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    data = json.loads(path.read_text(encoding="utf-8"))
    place = arena.rng.choice(("model", "pre_tokenizer", "normalizer", "merges"))
    if place == "merges":
        data["model"]["merges"] = [[*pair, "x"] for pair in data["model"]["merges"]]
    else:
        data[place]["type"] = arena.rng.choice(("BPEv2", "SplitV3", "TikTokenRegex", "UnigramPlus"))
    path.write_text(json.dumps(data, indent=2), encoding="utf-8")
    _serve_file(arena, path)


def _file_truncated(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    truncate(path, arena.rng.uniform(0.2, 0.9))
    _serve_file(arena, path)


def _file_replaced(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    write_lfs_pointer(path, arena.rng)
    _serve_file(arena, path)


def _file_missing(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    path.unlink()
    arena.serve(Code.of("return Tokenizer.from_file(path)", "from tokenizers import Tokenizer", path=path))


def _merges_unknown(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    data = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(5):
        data["model"]["vocab"].pop(arena.rng.choice([t for t in data["model"]["vocab"] if len(t) == 1]))
    path.write_text(json.dumps(data), encoding="utf-8")
    _serve_file(arena, path)


def _vocabulary_files(arena: Arena) -> None:
    folder = arena.path("models/{model}/vocab.json").parent
    (folder / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}), encoding="utf-8")
    case = arena.rng.choice(("no merges", "bad merges", "no vocab"))
    if case != "no merges":
        (folder / "merges.txt").write_text(
            "#version: 0.2\na b\nab\n" if case == "bad merges" else "a b\n", encoding="utf-8"
        )
    if case == "no vocab":
        (folder / "vocab.json").unlink()
    arena.serve(
        Code.of(
            """
            model = BPE.from_file(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"))
            return Tokenizer(model)
            """,
            "import os\n\nfrom tokenizers import Tokenizer\nfrom tokenizers.models import BPE",
            folder=folder,
        )
    )


def _unknown_token(arena: Arena) -> None:
    kind = arena.rng.choice(("WordPiece", "WordLevel", "BPE"))
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys(_WORDS))}
    make = {
        "WordPiece": 'WordPiece(vocabulary, unk_token="[UNK]")',
        "WordLevel": 'WordLevel(vocabulary, unk_token="[UNK]")',
        "BPE": 'BPE(vocabulary, [], unk_token="<unk>")',
    }[kind]
    arena.serve(
        Code.of(
            f"tokenizer = Tokenizer({make})\nreturn tokenizer.encode(text)",
            f"from tokenizers import Tokenizer\nfrom tokenizers.models import {kind}",
            phase="prepare",
            vocabulary=vocabulary,
            text=arena.rng.choice(("refund 4711", "Lieferung", "zzz", "qqq")),
        )
    )


def _sentencepiece_file(arena: Arena) -> Path:
    import sentencepiece

    path = arena.path(
        "models/{model}/" + arena.rng.choice(("tokenizer.model", "spiece.model", "sentencepiece.bpe.model"))
    )
    with path.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([_SENTENCE] * 5),
            model_writer=writer,
            vocab_size=40,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    return path


def _serve_sentencepiece(arena: Arena, path: Path) -> None:
    body = arena.rng.choice(
        (
            "return spm.SentencePieceProcessor(model_file=path)",
            "processor = spm.SentencePieceProcessor()\nprocessor.Load(path)\nreturn processor",
            'with open(path, "rb") as file:\n    return spm.SentencePieceProcessor(model_proto=file.read())',
        )
    )
    arena.serve(Code.of(body, "import sentencepiece as spm", path=path))


def _sentencepiece_broken(arena: Arena) -> None:
    path = _sentencepiece_file(arena)
    case = arena.rng.randrange(3)
    if case == 0:
        truncate(path, arena.rng.uniform(0.3, 0.9))
    elif case == 1:
        write_garbage(path, 4096, arena.rng)
    else:
        write_lfs_pointer(path, arena.rng)
    _serve_sentencepiece(arena, path)


def _sentencepiece_missing(arena: Arena) -> None:
    path = _sentencepiece_file(arena)
    path.unlink()
    arena.serve(Code.of("return spm.SentencePieceProcessor(model_file=path)", "import sentencepiece as spm", path=path))


def _auto_tokenizer(arena: Arena) -> None:
    """A model folder whose tokenizer files are missing or name a class that cannot be built."""
    folder = arena.path("models/{model}/config.json").parent
    kind = arena.rng.choice(("bert", "gpt2", "llama", "t5"))
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "hidden_size": 32}), encoding="utf-8")
    if arena.rng.random() < 0.5:
        settings = {"tokenizer_class": arena.rng.choice(("RagTokenizerV2", "GlyphTokenizer", "MegaBPETokenizer"))}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    elif arena.rng.random() < 0.5:
        parts = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
        model: dict[str, object] = {
            "type": arena.rng.choice(("Next", "BPEv2", "UnigramPlus")),
            "vocab": {"a": 0},
            "merges": [],
        }
        later: dict[str, object] = {"version": "1.0", "added_tokens": [], **dict.fromkeys(parts), "model": model}
        (folder / "tokenizer.json").write_text(json.dumps(later, indent=2), encoding="utf-8")
    arena.serve(
        Code.of("return AutoTokenizer.from_pretrained(folder)", "from transformers import AutoTokenizer", folder=folder)
    )


_TEMPLATES = (
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}",
    "{% for message in messages %}{{ message['role'] + message.name.first }}{% endfor %}",
    "{% for message in messages %}{{ message['content'] }}{% endif %}",
    "{{ messages[0]['content'] | tool_json }}",
    "{{ bos_token + messages[0].tool_calls[0]['name'] }}",
)


def _chat_template(arena: Arena) -> None:
    path = _tokenizer_file(arena)
    template = arena.rng.choice((None, *_TEMPLATES))
    arena.serve(
        Code.of(
            """
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=path, chat_template=template)
            messages = [{"role": "user", "content": "why"}, {"role": "user", "content": "and when"}]
            return tokenizer.apply_chat_template(messages, tokenize=False)
            """,
            "from transformers import PreTrainedTokenizerFast",
            phase="prepare",
            path=path,
            template=template,
        )
    )


FAULTS = (
    Fault(
        "tokenizers-unknown-variant",
        "tokenizer",
        "prepare",
        "tokenizers",
        "load a file of a later version",
        _unknown_variant,
    ),
    Fault(
        "tokenizers-truncated",
        "tokenizer",
        "prepare",
        "tokenizers",
        "load a file that was cut in half",
        _file_truncated,
    ),
    Fault("tokenizers-replaced", "tokenizer", "prepare", "tokenizers", "load an LFS pointer", _file_replaced),
    Fault("tokenizers-missing", "tokenizer", "prepare", "tokenizers", "load a file that is not there", _file_missing),
    Fault(
        "tokenizers-merges-unknown",
        "tokenizer",
        "prepare",
        "tokenizers",
        "load merges of unknown tokens",
        _merges_unknown,
    ),
    Fault(
        "tokenizers-vocabulary-files",
        "tokenizer",
        "prepare",
        "tokenizers",
        "load without vocabulary or merges",
        _vocabulary_files,
    ),
    Fault(
        "tokenizers-unknown-token",
        "tokenizer",
        "prepare",
        "tokenizers",
        "encode without an unknown token",
        _unknown_token,
    ),
    Fault(
        "sentencepiece-broken", "tokenizer", "prepare", "sentencepiece", "load a broken model", _sentencepiece_broken
    ),
    Fault(
        "sentencepiece-missing",
        "tokenizer",
        "prepare",
        "sentencepiece",
        "load a model that is not there",
        _sentencepiece_missing,
    ),
    Fault(
        "transformers-auto-tokenizer",
        "tokenizer",
        "prepare",
        "transformers",
        "build a tokenizer without its files",
        _auto_tokenizer,
    ),
    Fault(
        "transformers-chat-template",
        "tokenizer",
        "prepare",
        "transformers",
        "apply a chat template that is absent or wrong",
        _chat_template,
    ),
)
