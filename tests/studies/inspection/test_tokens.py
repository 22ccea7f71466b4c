"""What heads take from tokens of each kind, against vectors written out, and by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from scipy.stats import t as student
from tokenizers import processors
from torch import Tensor, nn
from transformers import PreTrainedModel

from headroles import make_corpus, measure_token_groups, read_bitext, read_conllu
from headroles.corpus import Sentence
from headroles.encoding import SPECIAL, EncodedExample, collate
from headroles.errors import CorpusError, ModelError, UsageError
from headroles.models.attention.reader import open_norms, open_reader
from headroles.models.heads.projections import find_projections
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_heads
from headroles.models.loading.encoder import LoadedModel
from headroles.passes.loop import ExampleBatch, as_tensors
from headroles.roles import PaddedBatch
from headroles.studies.inspection.tokens import (
    GROUPS,
    QUANTITIES,
    groups_of,
    rank_correlations,
    read_tokens,
    values_of,
)
from tests.conftest import flat, make_bert, make_tokenizer
from tests.models.decoders import make_decoder
from tests.models.families import HEADS, PROJECTED, make_model
from tests.rounding import WEIGHTS, assert_same_sums, tolerance
from tests.scoring.test_targets import PAIRS, Pair
from tests.scoring.test_targets import make_model as make_translator


def example_of(ids: list[int], words: list[int] | None = None, **said: Any) -> EncodedExample:
    """[CLS], pieces of the ``words``, if not given a piece each, and [SEP]."""
    within = np.arange(len(ids) - 2) if words is None else np.array(words)
    _, starts, sizes = np.unique(within, return_index=True, return_counts=True)
    return EncodedExample(
        id=f"e{len(ids)}",
        document="d",
        input_ids=np.array(ids),
        token_type_ids=None,
        segments=np.array([SPECIAL, *np.zeros_like(within), SPECIAL]),
        words=np.array([-1, *within, -1]),
        starts=starts + 1,
        sizes=sizes,
        governors=np.full(len(starts), -1),
        relations=("root",) * len(starts),
        **said,
    )


def read(model: PreTrainedModel, examples: list[EncodedExample]) -> np.ndarray:
    """What is read of examples side by side, (examples, layers, 4, tokens)."""
    tensors = as_tensors(collate(examples, 0), torch.device("cpu"))
    batch = ExampleBatch([*range(len(examples))], examples, tensors)
    with open_reader(find_stack(model)) as reader, open_norms(reader) as norms:
        encoder = LoadedModel(find_stack(model), make_tokenizer(), 64, False, {})
        return read_tokens(encoder, reader, norms, batch)


def brute_force(model: PreTrainedModel, example: EncodedExample) -> np.ndarray:
    """(layers, 4, tokens): attention as transformers returns it, a vector for each pair."""
    layers = find_projections(find_stack(model))
    outputs: dict[nn.Module, list[Tensor]] = {one.value.linear: [] for one in layers}

    def keep(module: nn.Module, given: object, output: Tensor) -> None:
        outputs[module].append(output[0].clone())

    handles = [linear.register_forward_hook(keep) for linear in outputs]
    ids = torch.from_numpy(example.input_ids)[None]
    with torch.no_grad():
        asked = {"attention_mask": torch.ones_like(ids), "output_attentions": True}
        attentions = model(ids, **asked).attentions
    for handle in handles:
        handle.remove()
    found = []
    for layer, projections in zip(attentions, layers, strict=True):
        value = outputs[projections.value.linear].pop(0)[:, projections.value.rows]
        if projections.value.bias_apart is not None:
            value = value + projections.value.bias
        value = value.repeat_interleave(HEADS // value.shape[1], dim=1)
        vectors = torch.einsum("nhs,hds->hnd", value, projections.output_weight)
        given = layer[0][..., None] * vectors[:, None]  # (heads, query, key, hidden)
        of_heads, of_layer = given.norm(dim=-1), given.sum(0).norm(dim=-1)
        shares = [
            layer[0].mean((0, 1)),
            (of_heads / of_heads.sum(-1, keepdim=True)).mean((0, 1)),
            (of_layer / of_layer.sum(-1, keepdim=True)).mean(0),
            vectors.norm(dim=-1).mean(0),
        ]
        found.append(torch.stack(shares))
    return torch.stack(found).detach().numpy()


@pytest.mark.numbers
@pytest.mark.parametrize("kind", PROJECTED)
def test_every_family_against_vectors_written_out(kind: str) -> None:
    """Two examples of different lengths, read side by side."""
    model = make_model(kind)
    for parameter in model.parameters():
        if parameter.dim() == 1:  # biases count
            torch.nn.init.normal_(parameter, std=0.3)
    examples = [example_of(list(range(8, 20))), example_of(list(range(25, 33)))]
    found = read(model, examples)
    for row, example in enumerate(examples):
        expected = brute_force(model, example)
        own = found[row, ..., : len(example)]
        # heads may cancel each other out: what they add up has the size of the largest
        assert_same_sums(own, expected, np.abs(expected).max(axis=-1, keepdims=True), WEIGHTS)
        np.testing.assert_allclose(own[:, :3].sum(-1), 1, rtol=tolerance())
        assert (found[row, :, :3, len(example) :] == 0).all()


# [CLS] the cat , the ca ##t [SEP]: two words of one piece, a mark, one word of two pieces
WORDS = ("cat", "the", ",", "purrs")
SENTENCE = Sentence("x", "d", 0, WORDS, (-1,) * 4, ("root",) * 4)
BY_HAND = example_of([*range(7)], [0, 1, 2, 3, 3], sentences=(SENTENCE,))
COUNTS = {"cat": 3, "the": 9, ",": 5}
SHARES = np.array([0.3, 0.1, 0.05, 0.15, 0.05, 0.15, 0.2])


def test_values_by_hand() -> None:
    """A word counts by the mean over its pieces; what has no frequency is the rarest."""
    per_token = np.stack([SHARES, SHARES[::-1], np.full(7, 1 / 7), np.arange(7.0)])[None]
    groups = groups_of(PaddedBatch([BY_HAND]))[:, 0]
    values = values_of(BY_HAND, per_token, groups, np.full((1, 7), 1 / 7), COUNTS)
    np.testing.assert_array_equal(values[0], values[1])  # one layer is all layers
    found = dict(zip(QUANTITIES, values[0].tolist(), strict=True))
    of_words = [0.1, 0.05, 0.15, (0.05 + 0.15) / 2]
    without_the_mark = spearmanr(of_words[:2] + of_words[3:], [3, 9, 0]).statistic
    for (group, quantity), expected in {
        ("classifier", "weights"): 0.3,
        ("classifier", "norms_less_weights"): -0.1,
        ("punctuation", "weights"): 0.15,
        ("other", "weights"): 0.35,
        ("other", "tokens"): 4 / 7,
        ("other", "length"): (1 + 2 + 4 + 5) / 4,
        ("words", "weights_by_frequency"): spearmanr(of_words, [3, 9, 5, 0]).statistic,
        ("words", "length_by_frequency"): spearmanr([1, 2, 3, 4.5], [3, 9, 5, 0]).statistic,
        ("other", "weights_by_frequency"): without_the_mark,
        ("other", "layer_norms_by_frequency"): np.nan,  # all words are alike
    }.items():
        assert found[group, quantity] == pytest.approx(expected, nan_ok=True)
    assert sum(found[group, "norms"] for group in GROUPS) == pytest.approx(1)
    # Groups that are not there are missing, and correlations where no frequency differs.
    groups = np.arange(4)[:, None] == np.full(7, 3)
    values = values_of(BY_HAND, np.ones((2, 4, 7)), groups, np.full((2, 7), 1 / 7), {})[0]
    found = dict(zip(QUANTITIES, values, strict=True))
    missing = [found["classifier", "weights"], found["words", "weights_by_frequency"]]
    assert (np.isnan(missing).tolist(), found["other", "tokens"]) == ([True, True], 1)


class Tokens:
    """Tokens that attend, and the tokens that get attention, with their words and groups."""

    def __init__(self, weights: np.ndarray, modules: list[nn.Module], words: list[int]) -> None:
        """``weights`` (layers, heads, query, key); ``modules`` are the attention of each layer."""
        self.weights, self.modules, self.words = weights.astype(np.float64), modules, words

    def norms(self, outputs: dict[nn.Module, Tensor], names: tuple[str, str]) -> np.ndarray:
        """Weights times the lengths of what a head passes on, each row divided by its sum."""
        norms, heads = self.weights.copy(), self.weights.shape[1]
        for layer, module in enumerate(self.modules):
            value, output = (getattr(module, name) for name in names)
            vectors, weight = outputs[value].double(), output.weight.detach().double()
            size = weight.shape[1] // heads
            for head in range(heads):
                own = slice(head * size, (head + 1) * size)
                for key in range(norms.shape[-1]):
                    norms[layer, head, :, key] *= (weight[:, own] @ vectors[key, own]).norm().item()
        return norms / norms.sum(-1, keepdims=True)

    def expected(self, rows: np.ndarray, groups: dict[str, list[int]], counts: list[int]) -> Any:
        """Shares by group, those of uniform attention, and correlations with frequency."""
        n_queries, n_keys = rows.shape[-2:]
        uniform = np.zeros((len(rows), n_keys))
        for layer in range(len(rows)):
            for query in range(n_queries):
                seen = [k for k in range(n_keys) if self.weights[layer, :, query, k].any()]
                uniform[layer, seen] += 1 / len(seen) / n_queries
        shares = rows.mean(axis=(1, 2))
        found = {(group, "tokens"): uniform[:, at].sum(1).mean() for group, at in groups.items()}
        found |= {(group, "shares"): shares[:, at].sum(1).mean() for group, at in groups.items()}
        if len(set(counts)) == 1 or len(counts) < 3:  # no correlation
            return found
        by_layer = []
        for of_layer, equal in zip(shares, uniform, strict=True):
            of_words = [
                np.mean([of_layer[k] / equal[k] for k, own in enumerate(self.words) if own == word])
                for word in range(len(counts))
            ]
            by_layer.append(spearmanr(of_words, counts).statistic)
        return {**found, ("words", "shares_by_frequency"): np.mean(by_layer)}


def assert_equals_loops(found: Any, expected: list[dict[str, Any]], quantity: str) -> None:
    rows = found.frame[found.frame["layer"] == "all"].set_index(["group", "quantity"])["mean"]
    for group, name in expected[0]:
        values = [of_example.get((group, name), np.nan) for of_example in expected]
        mean = rows[group, name.replace("shares", quantity)]
        assert mean == pytest.approx(np.nanmean(values), rel=1e-4), (group, name)


@pytest.mark.numbers
@pytest.mark.parametrize("attention", ["cross", "decoder"])
@pytest.mark.parametrize("kind", ["marian", "t5"])
def test_tokens_of_sources_and_targets_equal_loops(
    tmp_path: Path, kind: str, attention: str
) -> None:
    """Cross-attention goes to tokens of the source; of a decoder the first tokens are seen most."""
    (tmp_path / "pairs.bitext").write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS))
    model, tokenizer = make_translator(kind), make_tokenizer()
    asked: Any = {"tokenizer": tokenizer, "attention": attention, "duplicates": "keep"}
    found = measure_token_groups(model, read_bitext(tmp_path / "pairs.bitext"), **asked)
    model.set_attn_implementation("eager")
    side, names = int(attention == "decoder"), ("v", "o")
    texts = [pair[side].split() for pair in PAIRS]
    frequencies = Counter(word for text in texts for word in text)
    expected: dict[str, list[dict[str, Any]]] = {"weights": [], "norms": []}
    for pair, text in zip(PAIRS, texts, strict=True):
        tokens = Pair(pair, tokenizer, by_output=False)
        if kind == "t5":
            layer, name = (0, "SelfAttention") if side else (1, "EncDecAttention")
            modules = [getattr(block.layer[layer], name) for block in model.decoder.block]
        else:
            name, names = "self_attn" if side else "encoder_attn", ("v_proj", "out_proj")
            modules = [getattr(block, name) for block in model.decoder.layers]
        outputs: dict[nn.Module, Tensor] = {}

        def keep(linear: Any, _: Any, output: Tensor, kept: Any = outputs) -> None:
            kept[linear] = output[0].detach()

        hooks = [getattr(module, names[0]).register_forward_hook(keep) for module in modules]
        weights = tokens.attention(model, attention)
        for hook in hooks:
            hook.remove()
        words = tokens.target_words if side else tokens.source_words
        n_marks = [k for k, word in enumerate(words) if word >= 0 and not text[word].isalpha()]
        special = [k for k, word in enumerate(words) if word < 0]
        groups = {
            "classifier": special[:1],
            "separators": special[1:],
            "punctuation": n_marks,
            "other": [k for k in range(len(words)) if k not in {*n_marks, *special}],
        }
        groups = {group: at for group, at in groups.items() if at}
        own, counts = Tokens(weights, modules, words), [frequencies[word] for word in text]
        expected["weights"].append(own.expected(own.weights, groups, counts))
        expected["norms"].append(own.expected(own.norms(outputs, names), groups, counts))
    for quantity, of_examples in expected.items():
        assert_equals_loops(found, of_examples, quantity)
    where = "attention to sources" if attention == "cross" else "attention of the decoder"
    assert f"Where the {where} of" in flat(found)


@pytest.mark.numbers
def test_tokens_of_decoders_with_windows_equal_loops() -> None:
    """Uniform attention is that to the tokens in view: earlier ones, or those of a window."""
    model, tokenizer = make_decoder("qwen3"), make_tokenizer()
    texts = [pair[0].split() for pair in PAIRS]
    corpus = make_corpus(
        [
            (text, [-1, *range(len(text) - 1)], ["root", *["dep"] * (len(text) - 1)])
            for text in texts
        ]
    )
    found = measure_token_groups(model, corpus, tokenizer=tokenizer, pairing="none")
    model.set_attn_implementation("eager")
    frequencies = Counter(word for text in texts for word in text)
    expected = []
    for text in texts:
        cut = tokenizer(text, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            attentions = model(cut["input_ids"], output_attentions=True).attentions
        words = [-1 if word is None else word for word in cut.word_ids()]
        marks = [k for k, word in enumerate(words) if word >= 0 and not text[word].isalpha()]
        other = [k for k, word in enumerate(words) if word >= 0 and k not in marks]
        groups = {"classifier": [0], "separators": [len(words) - 1], "other": other}
        own = Tokens(np.stack([layer[0].numpy() for layer in attentions]), [], words)
        counts = [frequencies[word] for word in text]
        expected.append(own.expected(own.weights, groups, counts))
    assert_equals_loops(found, expected, "weights")


def test_bitexts_and_attention_have_to_fit(bert_folder: Path, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.bitext").write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS))
    with pytest.raises(UsageError, match="a bitext has sources and targets"):
        measure_token_groups(bert_folder, read_bitext(tmp_path / "pairs.bitext"))
    with pytest.raises(UsageError, match="cross attention needs sources and targets: give a bite"):
        measure_token_groups(bert_folder, read_conllu(sample), attention="cross")


def test_rank_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    values, counts = rng.integers(0, 5, (3, 9)).astype(float), rng.integers(0, 4, 9)
    expected = [spearmanr(row, counts).statistic for row in values]
    np.testing.assert_allclose(rank_correlations(values, counts), expected)
    assert np.isnan(rank_correlations(values[:, :2], counts[:2])).all()


def test_means_and_intervals_over_documents(bert_folder: Path, treebank: Path) -> None:
    """Of the mean over layers, shares add up to 1 and intervals are t's over documents."""
    corpus = read_conllu(treebank)
    found, apart = (
        measure_token_groups(bert_folder, corpus, pairing="none", clusters=clusters)
        for clusters in ("auto", "none")
    )
    summary = found.summary()
    assert list(summary.index) == list(GROUPS)
    np.testing.assert_allclose(summary["tokens"]["classifier"], summary["tokens"]["separators"])
    assert found.facts["n_clusters"] == 2
    assert found.record.model.read_through == "attention interface"
    *by_layer, of_all = found.frame.query("group == 'other' and quantity == 'norms'")["mean"]
    assert (len(by_layer), of_all) == (3, pytest.approx(np.mean(by_layer)))
    row = apart.frame.iloc[0]
    half = student.ppf(0.975, row["n"] - 1) * row["sd"] / np.sqrt(row["n"])
    assert row["ci_high"] - row["mean"] == pytest.approx(half)
    assert found.where(layer="all").summary().equals(summary)
    assert found.where(layer=0).summary().isna().all(axis=None)


@pytest.mark.parametrize(("upos", "share"), [("PUNCT", 1 / 7), ("_", 1 / 7), ("SYM", np.nan)])
def test_parts_of_speech_define_punctuation(bert_folder: Path, upos: str, share: float) -> None:
    tree = (1, -1, 1), ("det", "root", "punct")
    sentence = Sentence("s", "d", 0, ("the", "cat", "-"), *tree, {"upos": ("DET", "NOUN", upos)})
    found = measure_token_groups(bert_folder, make_corpus([sentence]), pairing="none")
    counted = found.summary()["tokens"]["punctuation"]  # "cat" is spelt out
    assert counted == pytest.approx(share, nan_ok=True)
    assert ("No example has punctuation marks." in flat(found)) == np.isnan(share)


@pytest.mark.parametrize(
    ("template", "missing"), [("$A", ("classifier", "separators")), ("$A [SEP]", ("classifier",))]
)
def test_tokenizers_without_special_tokens(template: str, missing: tuple[str, ...]) -> None:
    tokenizer = make_tokenizer()
    sep = ("[SEP]", tokenizer.convert_tokens_to_ids("[SEP]"))
    template_of = processors.TemplateProcessing(single=template, special_tokens=[sep])
    tokenizer.backend_tokenizer.post_processor = template_of
    corpus = make_corpus([(["a", "cat", "sat"], [1, 2, -1], ["det", "nsubj", "root"])])
    found = measure_token_groups(make_bert(), corpus, tokenizer=tokenizer, pairing="none")
    summary = found.summary()
    gone = [group for group in GROUPS if np.isnan(summary["weights"][group])]
    assert gone == [*missing, "punctuation"]
    assert np.nansum(summary["weights"]) == pytest.approx(1)


def test_removed_heads_have_no_part(treebank: Path) -> None:
    """A layer without heads has no values, and no part in the mean over layers."""
    model, corpus, rows = make_bert(), read_conllu(treebank), []
    for gone in ([], [(2, head) for head in range(4)]):
        remove_heads(model, gone)
        found = measure_token_groups(model, corpus, tokenizer=make_tokenizer())
        rows.append(found.frame.set_index(["layer", "group", "quantity"])["mean"])
    before, after = rows
    np.testing.assert_allclose(after[["0", "1"]], before[["0", "1"]], rtol=WEIGHTS)
    assert after["2"].isna().all()
    expected = (before["0", "other", "norms"] + before["1", "other", "norms"]) / 2
    assert after["all", "other", "norms"] == pytest.approx(expected)


def test_what_cannot_be_read(treebank: Path) -> None:
    model = make_bert(max_position_embeddings=8)
    with pytest.raises(CorpusError, match="no example could be read: 3 examples longer than"):
        measure_token_groups(model, read_conllu(treebank), tokenizer=make_tokenizer())
    model = make_model("bert")
    model.embeddings.word_embeddings.weight.data[30] = torch.nan
    with pytest.raises(ModelError, match="layer 0 is not finite for example 'e5'"):
        read(model, [example_of([8, 9, 30, 10, 11])])
