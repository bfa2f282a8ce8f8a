"""The prepare step: texts to a feed, the same by either way, and what is said of a tokenizer that is broken."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from crashpath.runtime.errors import InputError, ModelFolderError, TokenizerBroken
from crashpath.runtime.folder import Limits, ModelFolder, TensorSpec, TokenizerSpec, Tolerance
from crashpath.runtime.tokenizer import fallback_tokenizer, main_tokenizer

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "out", "of", "memory", "##s", "killed", ":", "cafe", "模")


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    """A folder with a small word-piece tokenizer in both forms; no artefacts."""
    ids = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.enable_padding(length=99)
    made.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    inputs = tuple(TensorSpec(name, "int64", ("batch", "sequence")) for name in ("input_ids", "attention_mask"))
    spec = TokenizerSpec("tokenizer.json", "vocab.txt", 6)
    return ModelFolder(tmp_path, "tiny", inputs, (), Tolerance(), Limits(), spec, ())


def test_texts_become_padded_int64(folder: ModelFolder) -> None:
    """Rows are padded on the right to the longest with the pad token, whatever the file told of it; masks say where."""
    feed = main_tokenizer(folder)(["killed", "out of memorys"])
    assert set(feed) == {"input_ids", "attention_mask"}
    assert feed["input_ids"].dtype == np.int64
    assert feed["input_ids"].tolist() == [[2, 9, 3, 0, 0, 0], [2, 5, 6, 7, 8, 3]]
    assert feed["attention_mask"].tolist() == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]


def test_long_texts_are_cut(folder: ModelFolder) -> None:
    """No row is longer than max_tokens, its end marker included."""
    assert main_tokenizer(folder)("out of memory " * 50)["input_ids"].tolist() == [[2, 5, 6, 7, 5, 3]]


def test_both_ways_give_the_same_feed(folder: ModelFolder) -> None:
    """The vocabulary alone gives what the tokenizer's file gives: case, accents, signs, Chinese, unknown words."""
    second = fallback_tokenizer(folder)
    assert second is not None
    for texts in (["Killed: CAFÉ", "模模 zzz"], "out OF memorys [SEP]", ["", "killed"]):
        main, other = main_tokenizer(folder)(texts), second(texts)
        assert all(np.array_equal(main[name], other[name]) for name in main)


def test_token_types_are_given_where_they_are_asked_for(folder: ModelFolder) -> None:
    """The feed has the inputs that the model declares, in any order."""
    asked = tuple(TensorSpec(name, "int64", ("b", "s")) for name in ("token_type_ids", "input_ids"))
    assert list(main_tokenizer(replace(folder, inputs=asked))("killed")) == ["token_type_ids", "input_ids"]


def test_a_file_cut_in_half_is_a_broken_tokenizer(folder: ModelFolder) -> None:
    """A cut file is a TokenizerBroken that names the file, with the library's error as its cause; mended, it serves."""
    path = folder.path / "tokenizer.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    step = main_tokenizer(folder)
    with pytest.raises(TokenizerBroken, match=r"tokenizer\.json") as caught:
        step("killed")
    assert isinstance(caught.value.__cause__, ValueError)
    path.write_bytes(whole)
    assert step("killed")["input_ids"].tolist() == [[2, 9, 3]]


def test_missing_files_are_broken_tokenizers(folder: ModelFolder) -> None:
    """A file that is not there is named, for both ways; a missing special token is named, too."""
    (folder.path / "tokenizer.json").unlink()
    with pytest.raises(TokenizerBroken, match=r"tokenizer\.json is missing"):
        main_tokenizer(folder)("killed")
    (folder.path / "vocab.txt").write_text("[PAD]\n[UNK]\nkilled\n", encoding="utf-8")
    second = fallback_tokenizer(folder)
    assert second is not None
    with pytest.raises(TokenizerBroken, match=r"has no \[CLS\], \[SEP\]"):
        second("killed")


def test_what_is_no_text_is_the_callers_error(folder: ModelFolder) -> None:
    """Wrong raw inputs are InputErrors, which never fall back: no text, nothing, half a surrogate pair."""
    step = main_tokenizer(folder)
    for wrong in (7, None, ["killed", 7], [], b"killed", ["\ud800"]):
        with pytest.raises(InputError) as caught:
            step(wrong)
        assert caught.value.input == "texts"


def test_without_a_tokenizer_one_sentence(folder: ModelFolder) -> None:
    """A folder that declares no tokenizer, or inputs that none gives, is said at once; no second way is None."""
    with pytest.raises(ModelFolderError, match=r"no \[tokenizer\]"):
        main_tokenizer(replace(folder, tokenizer=None))
    with pytest.raises(ModelFolderError, match="takes pixels"):
        main_tokenizer(replace(folder, inputs=(TensorSpec("pixels", "float32", ("n",)),)))
    assert fallback_tokenizer(replace(folder, tokenizer=TokenizerSpec("tokenizer.json", None, 6))) is None


def test_threads_share_one_tokenizer(folder: ModelFolder) -> None:
    """Eight threads that start together get the right feed, each its own."""
    step, start, wrong = main_tokenizer(folder), threading.Barrier(8), []

    def ask(words: int) -> None:
        start.wait()
        shapes = {step("killed " * words)["input_ids"].shape for _ in range(50)}
        if shapes != {(1, min(words + 2, 6))}:
            wrong.append(words)

    threads = [threading.Thread(target=ask, args=(words,)) for words in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
