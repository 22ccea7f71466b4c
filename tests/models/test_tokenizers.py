"""Tokenizers that tell words by the space before them, and those in Python only."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
import transformers as hf
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE, Unigram, WordLevel, WordPiece
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from headroles import make_corpus, score_heads
from headroles.corpus import Example, words_alone
from headroles.encoding import SPECIAL, EncodedExample, ExampleEncoder
from headroles.errors import TokenizerError, UsageError
from headroles.models.attention.reader import open_reader
from headroles.models.heads.stack import find_stack
from headroles.models.loading import rebuilt
from headroles.models.loading.encoder import load_encoder
from headroles.models.loading.tokenizers import encode as cut_words
from headroles.models.loading.tokenizers import fit_to_words, load_tokenizer, read_tokenizer
from headroles.models.options import ModelOptions, TargetOptions
from headroles.word_starts import with_prefix_space
from tests.conftest import SPECIALS, make_tokenizer
from tests.encoding.test_encoder import example
from tests.models.families import COMMON, make_model, make_whole
from tests.rounding import assert_same_outputs

S = SPECIAL


def encode(example: Example, tokenizer: PreTrainedTokenizerFast) -> EncodedExample:
    (encoded,) = ExampleEncoder(tokenizer, 512).encode([example], Counter())
    return encoded


WORD_PATTERN = r"'t| ?\p{L}+| ?[^\s\p{L}]+|\s+"


def byte_level(kind: str, add_prefix_space: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer in the manner of RoBERTa ("bare") or Llama 3 ("split")."""
    step = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=kind != "split")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {entry: k for k, entry in enumerate(["<s>", "</s>", "<unk>", *alphabet, "Ġd"])}
    backend = Tokenizer(BPE(vocabulary, [("Ġ", "d")], unk_token="<unk>"))
    backend.pre_tokenizer = step
    if kind == "split":
        split = pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated")
        backend.pre_tokenizer = pre_tokenizers.Sequence([split, step])
    if kind == "normalized":
        backend.normalizer = normalizers.NFC()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 1)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", cls_token="<s>", sep_token="</s>"
    )


BYTE_LEVEL = ["bare", "split", "normalized"]


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_words_are_cut_by_hand_as_they_are_scored(kind: str) -> None:
    """Called by itself, such a tokenizer takes all words for continuations of one another."""
    words, tokenizer = ["a", "dog", "don't"], byte_level(kind)
    pieces, alignment = cut_words(tokenizer, iter(words))
    expected = encode(example("a dog don't"), fit_to_words(tokenizer))
    assert pieces["input_ids"].tolist() == [expected.input_ids.tolist()]
    assert alignment == [None if word < 0 else word for word in expected.words]
    by_itself = tokenizer(words, is_split_into_words=True)["input_ids"]
    assert by_itself != pieces["input_ids"][0].tolist()
    with pytest.raises(TokenizerError, match="no word pieces"):
        cut_words(make_tokenizer(), ["\u200b"])
    with pytest.raises(UsageError, match="the sentence is 'a dog'; give its words, in a list"):
        cut_words(make_tokenizer(), "a dog")


@pytest.mark.parametrize("kind", BYTE_LEVEL)
def test_words_of_byte_level_tokenizers_begin_with_a_space(kind: str) -> None:
    """They are cut as in running text, and the tokenizer that was given stays as it was."""
    tokenizer = byte_level(kind)
    before = tokenizer.backend_tokenizer.to_str()
    encoded = encode(example("do don't", "no"), fit_to_words(tokenizer))
    assert tokenizer.convert_ids_to_tokens(encoded.input_ids.tolist()) == (
        "<s> Ġd o Ġd o n ' t </s> </s> Ġ n o </s>".split()
    )
    assert encoded.segments.tolist() == [S, *[0] * 7, S, S, 1, 1, 1, S]
    assert (encoded.starts.tolist(), encoded.sizes.tolist()) == ([1, 3, 10], [2, 5, 3])
    changed = with_prefix_space(tokenizer)
    assert changed is not tokenizer
    encoded = encode(example("do don't é 1d"), changed)
    assert encoded.input_ids.tolist() == tokenizer(" do don't é 1d")["input_ids"]
    encoded = encode(example(" do", arcs={0: (1, "nsubj")}), changed)
    assert (encoded.segments.tolist(), encoded.sizes.tolist()) == ([S, 0, 0, S], [0, 2])
    assert tokenizer.backend_tokenizer.to_str() == before


@pytest.mark.parametrize("kind", [*BYTE_LEVEL, "wordpiece"])
def test_tokenizers_that_need_no_space_are_used_as_they_are(kind: str) -> None:
    tokenizer = make_tokenizer() if kind == "wordpiece" else byte_level(kind, add_prefix_space=True)
    assert with_prefix_space(tokenizer) is tokenizer


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
    pieces = sentence_pieces(folder, "<s>", "<pad>", "</s>", "<unk>")
    return hf.M2M100Tokenizer(*pieces, src_lang="en")


DOGS = (*SPECIALS, "the", "dog", "##s")


def roc_bert(folder: Path) -> PreTrainedTokenizerBase:
    beside = [numbers(folder, *DOGS, name=name) for name in ("shape.json", "sound.json")]
    return hf.RoCBertTokenizer(lines(folder, *DOGS), *beside)


MOSES = ["<s>", "</s>", "<pad>", "<unk>", "<special1>", "the</w>", "do", "gs</w>", ".</w>"]
OF_MOSES = ["t h", "th e</w>", "d o", "g s</w>"]


def fsmt(folder: Path, targets: Sequence[str] = MOSES) -> PreTrainedTokenizerBase:
    source, target = numbers(folder, *MOSES), numbers(folder, *targets, name="targets.json")
    return hf.FSMTTokenizer(["en", "ru"], source, target, merges(folder, *OF_MOSES))


def test_targets_of_two_vocabularies_have_the_numbers_of_their_own(tmp_path: Path) -> None:
    """The target vocabulary is longer than that of sources, and so are the decoder's embeddings."""
    own = [*MOSES[:5], *(f"piece{k}" for k in range(80)), ".</w>", "the</w>", "do", "gs</w>"]
    tokenizer = fsmt(tmp_path, own)
    model = make_whole(
        "fsmt", vocab_size=len(own), tgt_vocab_size=len(own), decoder_start_token_id=1
    )
    of = TargetOptions(attention="cross")
    encoder = load_encoder(model, ModelOptions(tokenizer=tokenizer), of=of)
    pair = Example(tuple(words_alone(text.split()) for text in ("the dogs .", "dogs . the")))
    (cut,) = encoder.example_encoder().encode([pair], Counter())
    numbers_of = [MOSES.index(piece) for piece in ("the</w>", "do", "gs</w>", ".</w>", "</s>")]
    targets = [own.index(piece) for piece in ("</s>", "do", "gs</w>", ".</w>", "the</w>")]
    assert cut.input_ids.tolist() == [*numbers_of, *targets]
    assert cut.words.tolist() == [0, 1, 1, 2, -1, -1, 3, 3, 4, 5]
    assert tokenizer.encoder["the</w>"] == numbers_of[0]


def test_targets_of_marian_are_cut_by_their_own_pieces(tmp_path: Path) -> None:
    """Its sources know words, its targets letters: one vocabulary has the numbers of both."""
    model = marian(tmp_path).spm_files[0]
    letters = tmp_path / "letters"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the dog in the house"] * 9),
        model_prefix=str(letters),
        model_type="char",
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    both = [sentencepiece.SentencePieceProcessor(str(file)) for file in (model, f"{letters}.model")]
    pieces = [own.id_to_piece(k) for own in both for k in range(own.get_piece_size())]
    vocabulary = numbers(tmp_path, *dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"]))
    tokenizer = hf.MarianTokenizer(
        str(model), f"{letters}.model", vocabulary, source_lang="en", target_lang="de"
    )
    network = make_whole("marian", vocab_size=len(tokenizer), decoder_start_token_id=2)
    of = TargetOptions(attention="cross")
    encoder = load_encoder(network, ModelOptions(tokenizer=tokenizer), of=of)
    pair = Example(tuple(words_alone(text.split()) for text in ("the dog", "dog in")))
    for _ in range(2):  # cutting sources and targets in turn
        (cut,) = encoder.example_encoder().encode([pair], Counter())
        asked = tokenizer("the dog", text_target="dog in")
        assert cut.input_ids.tolist() == [*asked["input_ids"], 2, *asked["labels"][:-1]]
    assert len(asked["labels"]) == len("_dog_in") + 1 > len(asked["input_ids"])


def of_moses(name: str) -> Callable[[Path], PreTrainedTokenizerBase]:
    return lambda folder: getattr(hf, name)(numbers(folder, *MOSES), merges(folder, *OF_MOSES))


def of_syllables(name: str) -> Callable[[Path], PreTrainedTokenizerBase]:
    """PhoBERT's and BERTweet's, whose vocabulary counts its pieces."""
    made, codes = getattr(hf, name), ["s i 3", "si n 3", "sin h 3", "v i 2", "vi ê 2"]
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


OF_BERT = "[CLS] {0} [SEP] {0} [SEP]"
# Words are divided by bars, their pieces by commas; around them a pair of the same text twice.
READ: list[tuple[str, Callable[[Path], PreTrainedTokenizerBase], str, str, str]] = [
    (
        "EsmTokenizer",
        lambda folder: hf.EsmTokenizer(lines(folder, *AMINO_ACIDS)),
        *("M K T", "M|K|T", "<cls> {0} <eos> {0} <eos>"),
    ),
    ("MarianTokenizer", marian, "dog in the", "▁dog|▁in|▁the", "{0} {0} </s>"),
    ("M2M100Tokenizer", m2m, "dog in the", "▁dog|▁in|▁the", "__en__ {0} {0} </s>"),
    *(
        (name, of_moses(name), "the dogs .", "the</w>|do,gs</w>|.</w>", "<s> {0} </s> {0} </s>")
        for name in ("FlaubertTokenizer", "XLMTokenizer")
    ),
    ("FSMTTokenizer", fsmt, "the dogs", "the</w>|do,gs</w>", "{0} </s> {0} </s>"),
    ("BertJapaneseTokenizer", of_characters, "犬 吠える", "犬|吠,え,る", OF_BERT),
    *(
        (name, of_syllables(name), "tôi sinhviên", "tôi|sinh@@,viên", "<s> {0} </s> </s> {0} </s>")
        for name in ("PhobertTokenizer", "BertweetTokenizer")
    ),
    (
        "ProphetNetTokenizer",
        lambda folder: hf.ProphetNetTokenizer(lines(folder, *DOGS)),
        *("the dogs", "the|dog,##s", "{0} [SEP] {0} [SEP]"),
    ),
    ("RoCBertTokenizer", roc_bert, "the dogs", "the|dog,##s", OF_BERT),
    ("BlenderbotSmallTokenizer", small_blenderbot, "the dogs", "the|do@@,gs", "{0} {0}"),
]


@pytest.mark.parametrize(
    ("name", "make", "text", "words", "around"), READ, ids=[one[0] for one in READ]
)
def test_every_class_reports_the_word_of_each_piece(
    name: str, make: Callable[[Path], Any], text: str, words: str, around: str, tmp_path: Path
) -> None:
    tokenizer = make(tmp_path)
    assert (type(tokenizer).__name__, tokenizer.is_fast) == (name, False)
    encoder = ExampleEncoder(fit_to_words(tokenizer), 64, False)
    alone, pair = encoder.encode([example(text), example(text, text)], Counter())
    pieces = around.format(" ".join(re.split("[|,]", words))).split()
    assert tokenizer.convert_ids_to_tokens(pair.input_ids.tolist()) == pieces
    assert pair.sizes.tolist() == [len(word.split(",")) for word in words.split("|")] * 2
    n_each = len(pair.sizes) // 2
    for found in (alone, pair):
        assert found.input_ids.tolist() == tokenizer(*[text] * (1 + (found is pair)))["input_ids"]
        is_piece = found.segments != S
        assert (found.words[is_piece] // n_each == found.segments[is_piece]).all()
        assert (found.words[~is_piece] == -1).all()
        assert found.starts.tolist() == [
            found.words.tolist().index(word) for word in range(len(found.sizes))
        ]


def test_the_page_of_models_lists_these_classes() -> None:
    page = " ".join(Path("docs/models.md").read_text(encoding="utf-8").split())
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
    with pytest.raises(TokenizerError, match=r"cuts 1 of 1 examples otherwise .* as 'a': pieces"):
        encoder.encode([example(text)], Counter())


WITHOUT_UNKNOWN = [
    WordLevel({"a": 0, "dog": 1}, unk_token="[UNK]"),
    Unigram([("a", -1.0), ("dog", -2.0)]),
    BPE({"a": 0, "dog": 1}, [], unk_token="[UNK]"),
]


@pytest.mark.parametrize("model", WITHOUT_UNKNOWN)
def test_a_word_that_a_tokenizer_has_no_token_for_is_named(model: Any) -> None:
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    finding = r"cannot encode '{}' \(.*\); name an unknown token of its vocabulary"
    with pytest.raises(TokenizerError, match=finding.format("a dog sleeps")):
        cut_words(tokenizer, ["a", "dog", "sleeps"])
    encoder = ExampleEncoder(tokenizer, 64)
    known, unknown = example("a"), replace(example("sleeps").sentences[0], id="unknown")
    with pytest.raises(TokenizerError, match=finding.format("unknown")):
        encoder.encode([known, Example((unknown,))], Counter())


def test_dropout_is_set_to_none_and_said(tmp_path: Path) -> None:
    """With it a text is cut otherwise each time, and so are scores."""
    tokenizer = byte_level("bare")
    tokenizer.backend_tokenizer.model.dropout = 0.9
    cuts = {tuple(tokenizer(" d" * 50)["input_ids"]) for _ in range(5)}
    assert len(cuts) > 1
    for head in ("", None):
        loaded = load_encoder(
            make_model("roberta", vocab_size=300), ModelOptions(tokenizer=tokenizer), head
        )
        once, again = (loaded.tokenizer(" d" * 50)["input_ids"] for _ in range(2))
        assert once == again
        assert [note for note in loaded.description.warnings if "90% of its merges" in note]
    assert tokenizer.backend_tokenizer.model.dropout == pytest.approx(0.9)
    pieces, _ = cut_words(tokenizer, ["d"] * 50)
    assert pieces["input_ids"].shape == (1, 52)


def test_a_tokenizer_of_tables_is_refused_with_its_reason(tmp_path: Path) -> None:
    tapas = hf.TapasTokenizer(lines(tmp_path, *SPECIALS, "[EMPTY]", "the"))
    with pytest.raises(TokenizerError, match=r"cannot encode a sentence .*question IDs and table"):
        fit_to_words(tapas)


def test_a_protein_encoder_scores_as_with_a_fast_twin(tmp_path: Path) -> None:
    """ESM-2's folder has a vocabulary and no tokenizer.json."""
    tokens = {"vocab_size": len(AMINO_ACIDS), "pad_token_id": 1, "mask_token_id": 29}
    config = hf.EsmConfig(**{**COMMON, **tokens}, position_embedding_type="rotary")
    torch.manual_seed(0)
    hf.EsmModel(config).save_pretrained(tmp_path)
    hf.EsmTokenizer(lines(tmp_path, *AMINO_ACIDS)).save_pretrained(tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    numbered = {piece: k for k, piece in enumerate(AMINO_ACIDS)}
    backend = Tokenizer(WordLevel(numbered, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single="<cls> $A <eos>",
        pair="<cls> $A <eos> $B <eos>",
        special_tokens=[("<cls>", 0), ("<eos>", 2)],
    )
    names = {"unk_token": "<unk>", "cls_token": "<cls>", "sep_token": "<eos>", "pad_token": "<pad>"}
    names["model_input_names"] = ["input_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(tokenizer_object=backend, **names)
    loaded = load_encoder(tmp_path)
    assert (loaded.tokenizer.is_fast, loaded.description.warnings) == (False, [])
    cut = ["MKTAYIA", "LAGVSERT", "KQNF"]
    corpus = make_corpus((tuple(own), (-1, *range(len(own) - 1)), ("n",) * len(own)) for own in cut)
    found, expected = (
        score_heads(tmp_path, corpus, relations="n", tokenizer=one) for one in (None, fast)
    )
    assert found.values.tobytes() == expected.values.tobytes()
    assert found.digests == expected.digests


@pytest.mark.parametrize("kind", ["bert", "xlnet", "xlm", "roberta", "distilbert"])
def test_segments_are_those_of_the_tokenizer(kind: str, tmp_path: Path) -> None:
    """Pairs have the attention of ``model(**tokenizer(pair))``."""
    model, tokenizer = make_model(kind, vocab_size=128), make_tokenizer()
    if kind in ("roberta", "distilbert"):  # which have no segments
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(tmp_path)
    encoder = load_encoder(model, ModelOptions(tokenizer=tmp_path))
    (encoded,) = encoder.example_encoder().encode([example("the a of", "to be in")], Counter())
    expected = tokenizer("the a of", "to be in", return_tensors="pt")
    found: dict[int, Tensor] = {}
    inputs = {"input_ids": torch.tensor(encoded.input_ids)[None]}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if encoded.token_type_ids is not None:
        inputs["token_type_ids"] = torch.tensor(encoded.token_type_ids)[None]
    assert inputs.keys() == expected.keys()
    with torch.no_grad(), open_reader(find_stack(model)) as reader:
        reader.read(inputs, found.__setitem__)
    with torch.no_grad():
        attentions = model(**expected, output_attentions=True).attentions
    for layer, weights in enumerate(attentions):
        assert_same_outputs(found[layer], weights)


def of_steps(model: Any, pieces: list[str], around: str, **steps: Any) -> Tokenizer:
    """A tokenizer with special tokens first among its pieces, ``around`` a text, and ``steps``."""
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single=around,
        special_tokens=[(piece, pieces.index(piece)) for piece in around.split() if piece != "$A"],
    )
    backend.add_special_tokens(pieces[:5])
    for name, step in steps.items():
        setattr(backend, name, step)
    return backend


OF_BERT_STEPS = [*SPECIALS, "Hündin", "the", "▁Hündin", "▁the"]
OF_XLM_R = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁hündin", "▁the", "▁", *"Hünditheü"]


def bert_with_marks() -> Tokenizer:
    vocabulary = {piece: k for k, piece in enumerate(OF_BERT_STEPS)}
    return of_steps(WordPiece(vocabulary, unk_token="[UNK]"), OF_BERT_STEPS, "[CLS] $A [SEP]")


def xlm_r_in_small_letters() -> Tokenizer:
    model = Unigram([(piece, -float(k)) for k, piece in enumerate(OF_XLM_R)], 3)
    return of_steps(model, OF_XLM_R, "<s> $A </s>", normalizer=normalizers.Lowercase())


@pytest.mark.parametrize("kind", ["BertTokenizer", "XLMRobertaTokenizer"])
def test_tokenizer_json_is_read_as_it_stands(kind: str, tmp_path: Path) -> None:
    """These classes take the vocabulary from the file, and make steps of their own around it."""
    make = {"BertTokenizer": bert_with_marks, "XLMRobertaTokenizer": xlm_r_in_small_letters}[kind]
    backend = make()
    backend.save(str(tmp_path / "tokenizer.json"))
    settings = {"tokenizer_class": kind, "model_max_length": 77}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    make_model("bert", vocab_size=40).save_pretrained(tmp_path)
    theirs = hf.AutoTokenizer.from_pretrained(tmp_path)
    right = backend.encode("Hündin the").ids
    assert theirs("Hündin the")["input_ids"] != right
    loaded = load_encoder(tmp_path)
    (warning,) = loaded.description.warnings
    assert re.match(
        rf"{kind} of transformers cuts '.*' as .*, and tokenizer.json of .* as", warning
    )
    assert cut_words(str(tmp_path), ["Hündin", "the"])[0]["input_ids"].tolist() == [right]
    kept = ("special_tokens_map", "model_max_length", "model_input_names", "padding_side")
    for name in kept:
        assert getattr(loaded.tokenizer, name) == getattr(theirs, name)


def test_a_tokenizer_that_cuts_as_its_file_is_kept(tmp_path: Path) -> None:
    make_tokenizer().save_pretrained(tmp_path)
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer, warnings = read_tokenizer(tmp_path, ModelOptions())
    assert (type(tokenizer), warnings) == (hf.BertTokenizer, [])


def test_a_file_with_the_steps_of_its_class_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tokenizer().save_pretrained(tmp_path)
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    hf.AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    monkeypatch.setattr(rebuilt, "_texts_of", lambda _: pytest.fail("compared by texts"))
    tokenizer, warnings = read_tokenizer(tmp_path, ModelOptions())
    assert (type(tokenizer), warnings) == (hf.BertTokenizer, [])


@pytest.mark.parametrize("asked", [["a"], 3, {"tokenizer": "x"}])
def test_what_is_no_tokenizer_is_named(asked: object) -> None:
    with pytest.raises(TokenizerError, match=r"is no tokenizer; give a folder, a hub id, or"):
        load_tokenizer(asked, ModelOptions())  # type: ignore[arg-type]
