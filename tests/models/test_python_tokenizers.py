"""Tokenizers in Python only: the classes of transformers themselves, on vocabularies made here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers as hf
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from headroles import make_corpus, score_heads
from headroles.corpus import ROOT, Example, Sentence
from headroles.encoding import SPECIAL, ExampleEncoder
from headroles.errors import TokenizerError
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.tokenizers import fit_to_words

S = SPECIAL
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
AMINO_ACIDS = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO", "<mask>"]
TEXT = ["the old dog sleeps in the sun .", "it rains , of course .", "dogs bark in the night"]


def lines(folder: Path, *pieces: str) -> str:
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    return str(folder / "vocab.txt")


def numbers(folder: Path, *pieces: str, name: str = "vocab.json") -> str:
    (folder / name).write_text(json.dumps({piece: k for k, piece in enumerate(pieces)}))
    return str(folder / name)


def merges(folder: Path, *pairs: str, head: str = "#version: 0.2\n") -> str:
    (folder / "merges.txt").write_text(head + "\n".join(pairs) + "\n", encoding="utf-8")
    return str(folder / "merges.txt")


def sentence_pieces(folder: Path, *first: str, **settings: Any) -> tuple[str, str]:
    """A model of SentencePiece and its vocabulary, after the pieces ``first``."""
    (folder / "text").write_text("\n".join(TEXT * 50))
    sentencepiece.SentencePieceTrainer.train(
        input=folder / "text",
        model_prefix=folder / "spm",
        minloglevel=2,
        **{"vocab_size": 60, "model_type": "bpe", **settings},
    )
    trained = sentencepiece.SentencePieceProcessor(str(folder / "spm.model"))
    pieces = [trained.id_to_piece(number) for number in range(trained.get_piece_size())]
    every = dict.fromkeys([*first, *pieces, "<pad>"])
    return numbers(folder, *every), str(folder / "spm.model")


def marian(folder: Path, **settings: Any) -> PreTrainedTokenizerBase:
    vocabulary, model = sentence_pieces(folder, "</s>", "<unk>", **settings)
    return hf.MarianTokenizer(model, model, vocabulary, source_lang="en", target_lang="de")


def m2m(folder: Path) -> PreTrainedTokenizerBase:
    return hf.M2M100Tokenizer(
        *sentence_pieces(folder, "<s>", "<pad>", "</s>", "<unk>"), src_lang="en"
    )


def roc_bert(folder: Path) -> PreTrainedTokenizerBase:
    pieces = (*SPECIALS, "the", "dog", "##s", ".")
    beside = [numbers(folder, *pieces, name=name) for name in ("shape.json", "sound.json")]
    return hf.RoCBertTokenizer(lines(folder, *pieces), *beside)


MOSES = ["<s>", "</s>", "<pad>", "<unk>", "<special1>", "the</w>", "do", "gs</w>", ".</w>"]
OF_MOSES = ["t h", "th e</w>", "d o", "g s</w>"]


def fsmt(folder: Path) -> PreTrainedTokenizerBase:
    source, target = (numbers(folder, *MOSES, name=f"{name}.json") for name in ("one", "two"))
    return hf.FSMTTokenizer(["en", "ru"], source, target, merges(folder, *OF_MOSES))


def of_moses(kind: str) -> Callable[[Path], PreTrainedTokenizerBase]:
    made = getattr(hf, f"{kind}Tokenizer")
    return lambda folder: made(numbers(folder, *MOSES), merges(folder, *OF_MOSES))


def of_syllables(kind: str) -> Callable[[Path], PreTrainedTokenizerBase]:
    """PhoBERT's and BERTweet's, whose vocabulary counts its pieces."""
    made, codes = getattr(hf, f"{kind}Tokenizer"), ["s i 3", "si n 3", "sin h 3", "v i 2", "vi ê 2"]
    return lambda folder: made(
        lines(folder, "tôi 5", "sinh@@ 3", "viên 3", ""),
        merges(folder, "t ô 4", "tô i</w> 4", *codes, "viê n</w> 2", head=""),
    )


def small_blenderbot(folder: Path) -> PreTrainedTokenizerBase:
    pieces = ("__null__", "__start__", "__end__", "__unk__", "the", "do@@", "gs")
    return hf.BlenderbotSmallTokenizer(numbers(folder, *pieces), merges(folder, *OF_MOSES))


def of_characters(folder: Path) -> PreTrainedTokenizerBase:
    return hf.BertJapaneseTokenizer(
        lines(folder, *SPECIALS, *"犬が吠える大"),
        word_tokenizer_type="basic",
        subword_tokenizer_type="character",
    )


READ: list[tuple[str, Callable[[Path], PreTrainedTokenizerBase], str, str]] = [
    (
        "EsmTokenizer",
        lambda folder: hf.EsmTokenizer(lines(folder, *AMINO_ACIDS)),
        "M K T",
        "<cls> M|K|T <eos> M|K|T <eos>",
    ),
    ("MarianTokenizer", marian, "dog in the", "▁dog|▁in|▁the ▁dog|▁in|▁the </s>"),
    ("M2M100Tokenizer", m2m, "dog in the", "__en__ ▁dog|▁in|▁the ▁dog|▁in|▁the </s>"),
    (
        "FlaubertTokenizer",
        of_moses("Flaubert"),
        "the dogs .",
        "<s> the</w>|do,gs</w>|.</w> </s> the</w>|do,gs</w>|.</w> </s>",
    ),
    (
        "XLMTokenizer",
        of_moses("XLM"),
        "the dogs .",
        "<s> the</w>|do,gs</w>|.</w> </s> the</w>|do,gs</w>|.</w> </s>",
    ),
    ("FSMTTokenizer", fsmt, "the dogs", "the</w>|do,gs</w> </s> the</w>|do,gs</w> </s>"),
    (
        "BertJapaneseTokenizer",
        of_characters,
        "犬 吠える",
        "[CLS] 犬|吠,え,る [SEP] 犬|吠,え,る [SEP]",
    ),
    (
        "PhobertTokenizer",
        of_syllables("Phobert"),
        "tôi sinhviên",
        "<s> tôi|sinh@@,viên </s> </s> tôi|sinh@@,viên </s>",
    ),
    (
        "BertweetTokenizer",
        of_syllables("Bertweet"),
        "tôi sinhviên",
        "<s> tôi|sinh@@,viên </s> </s> tôi|sinh@@,viên </s>",
    ),
    (
        "ProphetNetTokenizer",
        lambda folder: hf.ProphetNetTokenizer(lines(folder, *SPECIALS, "the", "dog", "##s")),
        "the dogs",
        "the|dog,##s [SEP] the|dog,##s [SEP]",
    ),
    ("RoCBertTokenizer", roc_bert, "the dogs", "[CLS] the|dog,##s [SEP] the|dog,##s [SEP]"),
    ("BlenderbotSmallTokenizer", small_blenderbot, "the dogs", "the|do@@,gs the|do@@,gs"),
]


def example(*texts: str) -> Example:
    """Each text a sentence, all words of which are roots."""
    cut = [tuple(text.split()) for text in texts]
    return Example(
        tuple(
            Sentence(f"s{k}", "d", k, words, (ROOT,) * len(words), ("root",) * len(words))
            for k, words in enumerate(cut)
        )
    )


@pytest.mark.parametrize(("name", "make", "text", "expected"), READ, ids=[one[0] for one in READ])
def test_every_class_reports_the_word_of_each_piece(
    name: str, make: Callable[[Path], Any], text: str, expected: str, tmp_path: Path
) -> None:
    """A pair of the same text twice; words are divided by bars, their pieces by commas."""
    tokenizer = make(tmp_path)
    assert (type(tokenizer).__name__, tokenizer.is_fast) == (name, False)
    encoder = ExampleEncoder(fit_to_words(tokenizer), 64, False)
    alone, pair = encoder.encode([example(text), example(text, text)], Counter())
    groups = expected.split()
    pieces = [piece for group in groups for piece in group.replace("|", ",").split(",")]
    assert tokenizer.convert_ids_to_tokens(pair.input_ids.tolist()) == pieces
    of_words = [group for group in groups if "|" in group]
    assert pair.sizes.tolist() == [
        len(word.split(",")) for group in of_words for word in group.split("|")
    ]
    n_each = len(pair.sizes) // 2
    for found in (alone, pair):
        assert found.input_ids.tolist() == tokenizer(*[text] * (1 + (found is pair)))["input_ids"]
        is_piece = found.segments != S
        assert (found.words[is_piece] // n_each == found.segments[is_piece]).all()
        assert (found.words[~is_piece] == -1).all()
        assert found.starts.tolist() == [
            found.words.tolist().index(word) for word in range(len(found.sizes))
        ]


def test_the_page_of_encoders_lists_these_classes() -> None:
    page = " ".join(Path("docs/encoders.md").read_text(encoding="utf-8").split())
    assert ", ".join(f"`{name}`" for name, *_ in READ) in page


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda folder: hf.ByT5Tokenizer(), "the dog"),  # which has pieces for spaces
        (lambda folder: marian(folder, split_by_whitespace=False, vocab_size=90), TEXT[0]),
    ],
)
def test_pieces_that_reach_over_words_are_refused(
    make: Callable[[Path], PreTrainedTokenizerBase], text: str, tmp_path: Path
) -> None:
    encoder = ExampleEncoder(fit_to_words(make(tmp_path)), 64, False)
    with pytest.raises(TokenizerError, match=r"cuts 1 of 1 examples otherwise .* as 's0': pieces"):
        encoder.encode([example(text)], Counter())


def test_a_tokenizer_of_tables_is_refused_with_its_reason(tmp_path: Path) -> None:
    tapas = hf.TapasTokenizer(lines(tmp_path, *SPECIALS, "[EMPTY]", "the"))
    with pytest.raises(TokenizerError, match=r"cannot encode a sentence .*question IDs and table"):
        fit_to_words(tapas)


def test_a_protein_encoder_scores_as_with_a_fast_twin(tmp_path: Path) -> None:
    """ESM-2's folder has a vocabulary and no tokenizer.json."""
    config = hf.EsmConfig(
        vocab_size=len(AMINO_ACIDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=64,
        pad_token_id=1,
        mask_token_id=29,
        position_embedding_type="rotary",
    )
    torch.manual_seed(0)
    hf.EsmModel(config).eval().save_pretrained(tmp_path)
    hf.EsmTokenizer(lines(tmp_path, *AMINO_ACIDS)).save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    backend = Tokenizer(
        WordLevel({piece: k for k, piece in enumerate(AMINO_ACIDS)}, unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="<cls> $A <eos>",
        pair="<cls> $A <eos> $B <eos>",
        special_tokens=[("<cls>", 0), ("<eos>", 2)],
    )
    names = {"unk_token": "<unk>", "cls_token": "<cls>", "sep_token": "<eos>", "pad_token": "<pad>"}
    fast = PreTrainedTokenizerFast(tokenizer_object=backend, **names)
    fast.model_input_names = ["input_ids", "attention_mask"]
    loaded = load_encoder(tmp_path)
    assert (loaded.tokenizer.is_fast, loaded.description.warnings) == (False, [])
    chains = ["M K T A Y I A", "L A G V S E R T", "K Q N F"]
    corpus = make_corpus(
        (tuple(own.split()), (-1, *range(len(own.split()) - 1)), ("n",) * len(own.split()))
        for own in chains
    )
    found, expected = (
        score_heads(tmp_path, corpus, relations="n", tokenizer=one) for one in (None, fast)
    )
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.digests == expected.digests
