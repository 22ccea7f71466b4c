"""Decoders and cross-attention of encoder-decoders, against loops over what they return."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles import (
    HeadScores,
    attention_of,
    classify_heads,
    compare_roles,
    find_best_heads,
    find_examples,
    make_corpus,
    read_attention,
    read_bitext,
    score_attention,
    score_heads,
)
from headroles.corpus import Example, words_alone
from headroles.errors import CorpusError, ModelError, ModelSupportError, UsageError
from headroles.models.attention.reader import open_reader
from headroles.models.families import FAMILIES
from headroles.models.heads.stack import find_stack
from headroles.models.loading.encoder import load_encoder
from headroles.models.options import ModelOptions, TargetOptions
from headroles.studies.heads import second_half
from tests.commands import run
from tests.conftest import make_bert, make_tokenizer
from tests.models.families import make_whole
from tests.reference import mean
from tests.rounding import WEIGHTS, assert_same_sums, sizes_of_scores

PAIRS = [
    ("the cat eats bones .", "bones the cat eats .", "3-0 0-1 1-2 2-3 4p4"),
    ("dogs bark", "do dogs bark , cats ?", "0-1 0p0 1-2"),
    ("cats see the old dog that sleeps", "an old dog", "2-0 3-1 4-2"),
    ("the the the dog .", "the dog the .", "0-0 1p0 3-1 2-2 4-3"),
    ("eat !", "it eats it !", "0-1 0-2"),
    (
        "the cat , the dog , the bird .",
        "the bird sees the dog and the cat .",
        "6-0 7-1 3-3 4-4 0-6",
    ),
]
START = 2


@pytest.fixture(scope="module")
def bitext(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bitext") / "pairs.bitext"
    path.write_text("".join(f"{' ||| '.join(pair)}\n" for pair in PAIRS), "utf-8")
    return path


def make_model(kind: str) -> PreTrainedModel:
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size") * (kind == "fsmt"), 128)
    model = make_whole(kind, vocab_size=128, decoder_start_token_id=START, **sizes)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


class Pair:
    """The tokens of a source and a target; a word of -1 is none."""

    def __init__(
        self, pair: tuple[str, str, str], tokenizer: Any, by_output: bool, wraps: bool = False
    ) -> None:
        cls_id, sep_id = tokenizer("")["input_ids"]
        ids, words = [], []
        for text in pair[:2]:
            pieces = [
                tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
                for word in text.split()
            ]
            ids.append([cls_id, *(piece for own in pieces for piece in own), sep_id])
            words.append([-1, *(k for k, own in enumerate(pieces) for _ in own), -1])
        self.source, target = ids
        self.target = [target[-1] if wraps else START, *target[:-1]]
        self.source_words, of_target = words
        self.target_words = of_target if by_output else [-1, *of_target[:-1]]
        self.texts = pair[0].split(), pair[1].split()
        links = [link.replace("p", "-p").split("-", 1) for link in pair[2].split()]
        self.links = [(int(one), int(other.strip("p")), "p" in other) for one, other in links]
        self.marks = [k for k, word in enumerate(pair[0].split()) if not word.isalpha()]

    def attention(self, model: PreTrainedModel, kind: str) -> NDArray[np.float64]:
        """(layers, heads, query, key)."""
        with torch.no_grad():
            outputs = model(
                input_ids=torch.tensor([self.source]),
                attention_mask=torch.ones(1, len(self.source), dtype=torch.long),
                decoder_input_ids=torch.tensor([self.target]),
                decoder_attention_mask=torch.ones(1, len(self.target), dtype=torch.long),
                output_attentions=True,
                use_cache=False,
            )
        layers = outputs[f"{kind}_attentions"]
        return np.stack([layer[0].double().numpy() for layer in layers])

    def expected(self, weights: NDArray[np.float64], score: str) -> dict[str, Any]:
        """Of cross-attention, straight from the definitions."""
        n, words = len(self.source), [k for k in self.source_words if k >= 0]
        pieces = {k: [j for j, own in enumerate(self.source_words) if own == k] for k in words}
        rows_of = {
            k: [i for i, own in enumerate(self.target_words) if own == k]
            for k in self.target_words
            if k >= 0
        }
        inner = [j for j in range(n) if self.source_words[j] >= 0]
        queries = range(len(self.target))

        def row(i: int, sieve: list[int], among: list[int] | None = None) -> Any:
            sieve = [j for j in sieve if among is None or j in among]
            if score == "hit":
                candidates = np.array(range(n) if among is None else among)
                chosen = candidates[weights[..., i, candidates].argmax(-1)]
                return np.isin(chosen, sieve).astype(float) if sieve else None
            e, mass = len(sieve) / n, weights[..., i, sieve].sum(-1)
            if score == "bias":
                return mass / e if sieve else None
            return (mass - e) / (1 - e) if 0 < e < 1 else None

        def of_word(word: int, wanted: list[int]) -> Any:
            sieve = [j for k in wanted for j in pieces[k]]
            if score != "hit":
                return mean([row(i, sieve) for i in rows_of[word]])
            given = [
                np.mean([weights[..., i, own].sum(-1) for i in rows_of[word]], axis=0)
                for own in pieces.values()
            ]
            chosen = np.array(list(pieces))[np.argmax(given, axis=0)]
            return np.isin(chosen, wanted).astype(float) if wanted else None

        special = [j for j in range(n) if self.source_words[j] < 0]
        found = {
            name: mean([row(i, keys) for i in queries])
            for name, keys in (
                ("delimiter", special),
                ("delimiter:cls", [0]),
                ("delimiter:sep", [n - 1]),
            )
        }
        for k in (-1, 1):
            at = [i for i in queries if score != "hit" or self.target_words[i] >= 0]
            among = inner if score == "hit" else list(range(n))
            found[f"position:{k:+d}"] = mean([row(i, [i + k], among) for i in at])
        found["punctuation"] = mean([of_word(word, self.marks) for word in rows_of])
        sure = [(s, t) for s, t, is_possible in self.links if not is_possible]
        found["aligned"] = mean([of_word(t, [s]) for s, t in sure])
        if score != "hit":
            for contrast in ("beyond_offset", "near", "near:back"):
                found[f"aligned:{contrast}"] = mean(
                    [
                        self.contrast(weights, s, t, contrast, score, pieces, rows_of)
                        for s, t in sure
                    ]
                )
        return found

    def controls(self, source: int, target: int, contrast: str) -> list[tuple[int, int]]:
        """The pairs of words that a link is compared with, straight from the definitions."""
        sources, targets = self.texts
        if contrast == "beyond_offset":
            return [
                (s, t)
                for s in range(len(sources))
                for t in range(len(targets))
                if s - t == source - target
            ]
        one, other = (targets, sources) if contrast == "near" else (sources, targets)
        at, partner = (target, source) if contrast == "near" else (source, target)
        home = int((at + 0.5) / len(one) * len(other))
        rivals = [
            k
            for k, word in enumerate(other)
            # without parts of speech, words are of one class and marks of another
            if word.isalpha() == other[partner].isalpha()
            and k != partner
            and abs(k - home) <= abs(partner - home)
        ]
        return [(k, target) if contrast == "near" else (source, k) for k in rivals]

    def contrast(
        self,
        weights: NDArray[np.float64],
        source: int,
        target: int,
        contrast: str,
        score: str,
        pieces: dict[int, list[int]],
        rows_of: dict[int, list[int]],
    ) -> Any:
        joined = {(s, t) for s, t, _ in self.links}
        others = [
            (s, t)
            for s, t in self.controls(source, target, contrast)
            if s in pieces and t in rows_of and (s, t) not in joined
        ]
        if not others:
            return None
        control = mean(
            [weights[:, :, rows_of[t]][..., pieces[s]].mean((-1, -2)) for s, t in others]
        )
        e = len(pieces[source]) / len(self.source)
        scale = 1 / e if score == "bias" else 1 / (1 - e)
        mass = weights[:, :, rows_of[target]][..., pieces[source]].mean((-1, -2)) - control
        return mass * len(pieces[source]) * scale


@pytest.mark.numbers
@pytest.mark.parametrize("rows", ["input", "output"])
@pytest.mark.parametrize("score", ["bias", "excess", "hit"])
@pytest.mark.parametrize("kind", ["bart", "t5", "marian", "m2m_100", "mbart", "fsmt"])
def test_cross_attention_equals_loops(bitext: Path, kind: str, score: str, rows: str) -> None:
    model, tokenizer = make_model(kind), make_tokenizer()
    scores = score_heads(
        model,
        read_bitext(bitext),
        tokenizer=tokenizer,
        attention="cross",
        target_rows=rows,
        score=score,
        controls="none",
    )
    sizes = sizes_of_scores(scores)
    model.set_attn_implementation("eager")
    for found, size, pair in zip(scores.values, sizes, PAIRS, strict=True):
        # mBART begins with the last piece of the target, a language or its end
        tokens = Pair(pair, tokenizer, rows == "output", wraps=kind == "mbart")
        expected = tokens.expected(tokens.attention(model, "cross"), score)
        assert set(expected) == set(scores.role_ids)
        for place, role in enumerate(scores.role_ids):
            if expected[role] is None:
                assert np.isnan(found[..., place]).all(), role
            else:
                assert_same_sums(found[..., place], expected[role], size[..., place], WEIGHTS)


@pytest.mark.parametrize("kind", ["m2m_100", "mbart"])
def test_languages_stand_where_the_model_was_trained_with_them(kind: str) -> None:
    """The decoder begins `</s> de_DE`, the source `en_XX`, as transformers prepares them."""
    words = "the cat eats bones dogs bark".split()
    specials = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    pieces = [(f"▁{word}", -1.0) for word in words] + [(letter, -9.0) for letter in "▁abcdefgt"]
    tokenizer = hf.MBart50Tokenizer(vocab=[*specials, *pieces])
    model = make_whole(kind, vocab_size=len(tokenizer), decoder_start_token_id=START)
    seen: dict[str, list[list[int]]] = {}

    def see(module: Any, args: Any, named: dict[str, Any]) -> None:
        seen[type(module).__name__] = named["input_ids"].tolist()

    for half in (model.get_encoder(), model.get_decoder()):
        half.register_forward_pre_hook(see, with_kwargs=True)
    pairs = [{"source": "the cat eats bones", "target": "dogs bark the bones", "links": "3-3"}]
    languages = {"source_language": "en_XX", "target_language": "de_DE"}
    scores = score_heads(model, pairs, tokenizer=tokenizer, attention="cross", **languages)
    assert np.isfinite(scores.column("aligned")).all()
    tokenizer.src_lang, tokenizer.tgt_lang = "en_XX", "de_DE"
    asked = tokenizer(pairs[0]["source"], text_target=pairs[0]["target"])
    labels = torch.tensor([asked["labels"]])
    if kind == "mbart":
        decoder = hf.models.mbart.modeling_mbart.shift_tokens_right(labels, 1)
    else:
        decoder = hf.models.m2m_100.modeling_m2m_100.shift_tokens_right(labels, 1, START)
    assert [*seen.values()] == [[asked["input_ids"]], decoder.tolist()]
    german = tokenizer.convert_tokens_to_ids("de_DE")
    assert german in decoder[0]
    with pytest.raises(UsageError, match=r"knows no language 'xx', it has: .* and 4\d more; give"):
        score_heads(
            model,
            pairs,
            tokenizer=tokenizer,
            attention="cross",
            **{**languages, "source_language": "xx"},
        )


@pytest.mark.numbers
@pytest.mark.parametrize("kind", ["bart", "t5", "fsmt"])
def test_decoders_of_translations_equal_loops(bitext: Path, kind: str) -> None:
    model, tokenizer = make_model(kind), make_tokenizer()
    scores = score_heads(
        model,
        read_bitext(bitext),
        tokenizer=tokenizer,
        attention="decoder",
        roles="first,position,self,duplicate",
    )
    model.set_attn_implementation("eager")
    for found, pair in zip(scores.values, PAIRS, strict=True):
        tokens = Pair(pair, tokenizer, by_output=False)
        weights = tokens.attention(model, "decoder")
        ids, n = tokens.target, len(tokens.target)
        words = [i for i in range(n) if tokens.target_words[i] >= 0]
        copies = {i: [j for j in words if j < i and ids[j] == ids[i]] for i in words}
        sieves = {
            "first": {i: [0] for i in range(n)},
            "self": {i: [i] for i in range(n)},
            "position:-1": {i: [i - 1] for i in range(1, n)},
            "duplicate": {i: own for i, own in copies.items() if own},
        }
        for role, sieve in sieves.items():
            rows = [(i + 1) / len(own) * weights[..., i, own].sum(-1) for i, own in sieve.items()]
            values = found[..., scores.role_ids.index(role)]
            if rows:
                assert_same_sums(values, np.mean(rows, axis=0), of=WEIGHTS)
            else:
                assert np.isnan(values).all()
        assert np.isnan(found[..., scores.role_ids.index("position:+1")]).all()


def scored(model: PreTrainedModel, corpus: Any, **options: Any) -> HeadScores:
    return score_heads(model, corpus, tokenizer=make_tokenizer(), **options)


def test_a_bitext_in_memory_has_the_table_of_its_file(bitext: Path) -> None:
    pairs = [
        {"source": source, "target": target.split(), "links": links}
        for source, target, links in PAIRS
    ]
    for rows in ("input", "output"):
        tables = []
        for corpus in (read_bitext(bitext), pairs, make_corpus(pairs)):
            options = {"tokenizer": make_tokenizer(), "attention": "cross", "target_rows": rows}
            found = classify_heads(make_model("bart"), corpus, **options)
            tables.append(found.roles.export("csv"))
        assert tables[0] == tables[1] == tables[2]


def test_batches_do_not_matter_and_norms_are_of_the_source(bitext: Path) -> None:
    model = make_model("bart")
    for measure in ("weights", "norms"):
        asked = {"attention": "cross", "measure": measure}
        one, all_ = (
            scored(model, read_bitext(bitext), batch_tokens=n, **asked) for n in (1, 10_000)
        )
        assert_same_sums(one.values, all_.values, sizes_of_scores(one), WEIGHTS)
        assert one.record.model.attention == "cross"


@pytest.mark.numbers
@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_norms_of_cross_attention_equal_loops(bitext: Path, kind: str) -> None:
    """Weights times the lengths of value vectors of the source after the output projection."""
    model, tokenizer = make_model(kind), make_tokenizer()
    asked: Any = {"attention": "cross", "measure": "norms", "controls": "none"}
    scores = score_heads(model, read_bitext(bitext), tokenizer=tokenizer, **asked)
    model.set_attn_implementation("eager")
    heads = scores.n_heads
    for found, pair in zip(scores.values, PAIRS, strict=True):
        tokens = Pair(pair, tokenizer, by_output=False)
        norms = tokens.attention(model, "cross")
        with torch.no_grad():
            source: Any = model.get_encoder()(torch.tensor([tokens.source])).last_hidden_state[0]
        for layer in range(len(norms)):
            if kind == "t5":
                across = model.decoder.block[layer].layer[1].EncDecAttention
                values, output = across.v(source), across.o.weight
            else:
                across = model.decoder.layers[layer].encoder_attn
                values, output = across.v_proj(source), across.out_proj.weight
            size = values.shape[1] // heads
            for head in range(heads):
                own = slice(head * size, (head + 1) * size)
                for place in range(len(source)):
                    length = torch.linalg.vector_norm(output[:, own] @ values[place, own])
                    norms[layer, head, :, place] *= length.item()
        norms /= norms.sum(axis=-1, keepdims=True)
        expected = tokens.expected(norms, "bias")
        for place, role in enumerate(scores.role_ids):
            if expected[role] is not None:
                np.testing.assert_allclose(found[..., place], expected[role], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attention", ["cross", "decoder"])
def test_saved_arrays_with_lists_of_words_have_the_scores_of_the_model(
    bitext: Path, attention: str
) -> None:
    model, tokenizer, corpus = make_model("bart"), make_tokenizer(), read_bitext(bitext)
    asked: Any = {"attention": attention, "roles": "position,delimiter"}
    scores = score_heads(model, corpus, tokenizer=tokenizer, **asked)
    model.set_attn_implementation("eager")
    cut = [Pair(pair, tokenizer, by_output=False) for pair in PAIRS]
    arrays = [pair.attention(model, attention).astype("f4") for pair in cut]
    words = [
        [[None if word < 0 else word for word in side] for side in sides]
        for sides in ((pair.source_words, pair.target_words) for pair in cut)
    ]
    found = score_attention(arrays, corpus, words, **asked)
    np.testing.assert_allclose(found.values, scores.values, rtol=1e-4, atol=1e-5)
    with pytest.raises(UsageError, match="give the words of the pieces of its source, and those"):
        score_attention(arrays, corpus, [*words[:-1], [[0]]], **asked)


def homes_of(pair: tuple[str, str, str]) -> list[int]:
    """For each word of the target, the word of the source at the same part of the sentence."""
    n_source, n_target = (len(text.split()) for text in pair[:2])
    return [int((k + 0.5) * n_source / n_target) for k in range(n_target)]


def nearest_to(home: int, words: list[int], side: str) -> int | None:
    """The nearest of some words of the source to a place, which is one of them, on a side."""
    if side == "to the left":
        words = [word for word in words if word <= home]
    elif side == "to the right":
        words = [word for word in words if word >= home]
    return min(words, key=lambda word: (abs(word - home), word), default=None)


def test_first_choices_of_words_are_compared_with_rules_along_the_diagonal(
    bitext: Path, tmp_path: Path
) -> None:
    (tmp_path / "many.bitext").write_text(3 * bitext.read_text("utf-8"), "utf-8")
    model, tokenizer = make_model("bart"), make_tokenizer()
    asked: Any = {"tokenizer": tokenizer, "attention": "cross", "score": "hit"}
    scores = score_heads(model, read_bitext(tmp_path / "many.bitext"), **asked)
    assert scores.offsets == (-5, -4, -3, -2, -1, 0, 1, 2, 3, 4)
    assert scores.offset_shares is not None
    place = scores.role_ids.index("aligned")
    for found, given in zip(scores.offset_shares[:, place], 3 * PAIRS, strict=True):
        sure = [(s, t) for s, t, maybe in Pair(given, tokenizer, False).links if not maybe]
        homes = homes_of(given)
        expected = [np.mean([s - homes[t] == offset for s, t in sure]) for offset in scores.offsets]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    rules = scores.class_rules("aligned").rules
    assert [*map(str, rules[:2])] == [
        "nearest word (X) to the left",
        "nearest word (X) to the right",
    ]
    assert scores.class_hits is not None
    for found, given in zip(scores.class_hits[:, place], 3 * PAIRS, strict=True):
        words, homes = given[0].split(), homes_of(given)
        sure = [(s, t) for s, t, maybe in Pair(given, tokenizer, False).links if not maybe]
        for hits, rule in zip(found, rules, strict=False):
            own = [k for k in range(len(words)) if words[k].isalpha() == (rule.word_class == "X")]
            assert hits == sum(nearest_to(homes[t], own, rule.side) == s for s, t in sure)
    again: Any = {"model": model, "tokenizer": tokenizer}
    best = find_best_heads(scores, top=2, duplicates="keep", **again).frame
    shares = scores.offset_shares[:, place]
    for row in best.to_dict("records"):
        of_half = second_half(scores) == (row["half"] == 2)
        place_of = scores.offsets.index(row["offset"])
        assert shares[~of_half].mean(0).argmax() == place_of
        assert row["offset_mean"] == pytest.approx(shares[of_half, place_of].mean())
        assert 0 <= row["offset_precision"] <= 1
    assert set(best["role"]) == {"aligned"}


def test_decoders_have_the_arcs_of_targets_that_are_a_treebank(tmp_path: Path) -> None:
    """Each word depends on the one after it, which it does not see; the other direction is seen."""
    rows, sources = [], []
    for number, (source, target, _) in enumerate(PAIRS):
        words = target.split()
        rows += [f"# newdoc id = d{number}", f"# sent_id = s{number}"]
        for k, word in enumerate(words, 1):
            head, label = (k + 1, "obj") if k < len(words) else (0, "root")
            rows.append("\t".join([str(k), word, *"____", str(head), label, "_", "_"]))
        rows.append("")
        sources.append(source)
    (tmp_path / "targets.conllu").write_text("\n".join(rows) + "\n", "utf-8")
    (tmp_path / "sources").write_text("".join(f"{line}\n" for line in sources), "utf-8")
    corpus = read_bitext(tmp_path / "sources", translations=tmp_path / "targets.conllu")
    model, tokenizer = make_model("bart"), make_tokenizer()
    scores = score_heads(model, corpus, tokenizer=tokenizer, attention="decoder")
    model.set_attn_implementation("eager")
    role = scores.role_ids.index("syntactic:obj:to_dependent")
    for found, given in zip(scores.values[..., role], PAIRS, strict=True):
        pair = Pair(given, tokenizer, by_output=False)
        weights, of_arcs = pair.attention(model, "decoder"), []
        rows_of = {k: np.flatnonzero(np.equal(pair.target_words, k)) for k in pair.target_words}
        for word in range(1, len(given[1].split())):
            keys = rows_of[word - 1]
            of_rows = [(i + 1) / len(keys) * weights[..., i, keys].sum(-1) for i in rows_of[word]]
            of_arcs.append(np.mean(of_rows, axis=0))
        assert_same_sums(found, np.mean(of_arcs, axis=0), of=WEIGHTS)
    assert np.isnan(scores.column("syntactic:obj:to_governor")).all()


def test_two_kinds_of_attention_are_not_compared(bitext: Path) -> None:
    cross, decoder = (
        scored(make_model("bart"), read_bitext(bitext), attention=kind, roles="first")
        for kind in ("cross", "decoder")
    )
    with pytest.raises(UsageError, match="differ in their attention"):
        compare_roles(cross, decoder)


def test_what_families_say_is_read_can_be_read() -> None:
    whole = [kind for kind, family in FAMILIES.items() if "cross" in family.reads]
    assert {"t5", "bart", "marian", "m2m_100"} <= {*whole}
    for kind in whole:
        model = make_model(kind).eval()
        for attention in FAMILIES[kind].reads:
            with open_reader(find_stack(model, attention)) as reader:
                assert reader.description["attention"] == attention
    for kind in ("prophetnet", "t5gemma2"):
        assert FAMILIES[kind].reads == ("encoder",)


def test_attention_and_corpus_must_fit(
    bitext: Path, sample: Path, tokenizer: PreTrainedTokenizerBase
) -> None:
    bart = make_model("bart")
    with pytest.raises(UsageError, match="score it with attention='cross', or"):
        scored(bart, read_bitext(bitext))
    with pytest.raises(UsageError, match="cross attention needs sources and targets"):
        scored(bart, sample, attention="cross")
    with pytest.raises(UsageError, match="omit pairing"):
        scored(bart, read_bitext(bitext), attention="cross", pairing="none")


def test_targets_begin_as_the_model_begins_them() -> None:
    """With a token of the configuration, or in mBART with the last piece, the language."""
    for kind, first in (("bart", START), ("mbart", make_tokenizer().sep_token_id)):
        of = TargetOptions(attention="cross")
        encoder = load_encoder(make_model(kind), ModelOptions(tokenizer=make_tokenizer()), of=of)
        sentences = Example(tuple(words_alone(text.split()) for text in ("a cat", "one dog")))
        (pair,) = encoder.example_encoder().encode([sentences], Counter())
        assert pair.input_ids[pair.n_source] == first
        assert pair.words[pair.n_source] == -1
        assert list(dict.fromkeys(pair.words[pair.words >= 0])) == [0, 1, 2, 3]


def test_languages_that_a_tokenizer_lacks_are_refused(bitext: Path) -> None:
    with pytest.raises(UsageError, match="knows no language 'de', it has none; give a code"):
        scored(make_model("bart"), read_bitext(bitext), attention="cross", target_language="de")


def test_models_without_a_decoder_are_refused(bitext: Path) -> None:
    with pytest.raises(ModelSupportError, match="BERT has no cross attention beside that of"):
        scored(make_bert(), read_bitext(bitext), attention="cross")
    with pytest.raises(ModelSupportError, match="its decoder attends to several sequences at on"):
        scored(make_whole("prophetnet"), read_bitext(bitext), attention="cross")


def test_screens_speak_of_source_and_target(bitext: Path, tmp_path: Path) -> None:
    pairs = bitext.read_text("utf-8")
    (tmp_path / "many.bitext").write_text(3 * pairs, "utf-8")
    found = classify_heads(
        make_model("bart"),
        read_bitext(tmp_path / "many.bitext"),
        tokenizer=make_tokenizer(),
        attention="cross",
        duplicates="keep",
    )
    text = str(found)
    assert "Each token of the target sees all of the source." in text
    assert "alignments of other pairs" in text
    assert "cross-attention of 2 layers x 2 heads" in text
    assert "18 pairs, 18 documents" in " ".join(text.split())
    assert "aligned words of the source" in text
    assert "words of pairs" not in text
    found.save(tmp_path / "out")
    examples = find_examples(found.scores, (0, 0), "aligned", n=1)
    source, between, target = examples.frame["text"][0].partition(" ||| ")
    assert (source.replace("[", "").replace("]", ""), target) in [pair[:2] for pair in PAIRS]
    assert between
    assert set(examples.frame["example"]) <= set(found.scores.ids)


def test_the_nearest_word_of_a_class_has_no_positive_contrast(bitext: Path) -> None:
    """A head that looks along the diagonal finds many aligned words, none past a nearer one."""
    tokenizer = make_tokenizer()
    arrays = []
    for pair in PAIRS:
        tokens = Pair(pair, tokenizer, by_output=False)
        weights = np.zeros((1, 1, len(tokens.target), len(tokens.source)))
        n_source, n_target = map(len, tokens.texts)
        for row, word in zip(weights[0, 0], tokens.target_words, strict=True):
            home = int((word + 0.5) / n_target * n_source) if word >= 0 else -1
            row[[own == home for own in tokens.source_words]] = 1
            row /= row.sum()
        arrays.append(weights)
    scores = score_attention(arrays, read_bitext(bitext), tokenizer, attention="cross")
    found, near = (scores.column(name) for name in ("aligned", "aligned:near"))
    assert np.nanmean(found) > 1.5
    assert (near[~np.isnan(near)] <= WEIGHTS).all()
    assert (near < 0).any()


def linked_words(source: Any, target: Any) -> list[tuple[int, int]]:
    """The sure links of a pair, as a role of the user's own."""
    text = " ".join(source.words), " ".join(target.words)
    links = next(links for *known, links in PAIRS if tuple(known) == text)
    return [(int(one[0]), int(one[2])) for one in links.split() if "-" in one]


def test_pairs_of_the_user_s_own_have_the_contrasts_of_aligned_words(tmp_path: Path) -> None:
    sure = [pair for pair in PAIRS if "p" not in pair[2]]
    assert len(sure) > 2
    (tmp_path / "sure.bitext").write_text("".join(f"{' ||| '.join(pair)}\n" for pair in sure))
    scores = scored(
        make_model("bart"),
        read_bitext(tmp_path / "sure.bitext"),
        attention="cross",
        roles=["aligned", linked_words],
        controls="none",
    )
    own = next(name for name in scores.role_ids if name.endswith("linked_words:back"))
    for contrast in ("", ":beyond_offset", ":near", ":near:back"):
        expected = scores.column(f"aligned{contrast}")
        np.testing.assert_array_equal(scores.column(f"{own}{contrast}"), expected)
        assert not np.isnan(expected).all()


def between_units(pair: Pair, weights: NDArray[np.float64], is_cross: bool) -> Any:
    """Attention between special tokens and words of both sequences, in their order."""
    n_source, n_words = len(pair.source), 1 + max(pair.source_words)
    of_target = [word + n_words if word >= 0 else -1 for word in pair.target_words]
    units: list[list[int]] = []
    words = [*pair.source_words, *of_target]
    for place, word in enumerate(words):
        if word >= 0 and place and words[place - 1] == word:
            units[-1].append(place)
        else:
            units.append([place])
    whole = np.zeros((len(words), len(words)))
    columns = slice(0, n_source) if is_cross else slice(n_source, None)
    whole[n_source:, columns] = weights
    between = [[whole[np.ix_(a, b)].sum(1).mean() for b in units] for a in units]
    return np.array(between), np.array([words[unit[0]] for unit in units])


def cells_of(pair: Pair, role: str, is_cross: bool) -> NDArray[np.float64]:
    """1 where a query of the target looks for a key in a role, 0 elsewhere."""
    n_keys = len(pair.source if is_cross else pair.target)
    cells = np.zeros((len(pair.target), n_keys))
    for i, word in enumerate(pair.target_words):
        for j in range(n_keys if is_cross else i + 1):
            linked = [s for s, t, is_possible in pair.links if t == word and not is_possible]
            cells[i, j] = {
                "first": j == 0,
                "self": j == i,
                "position:-1": j == i - 1,
                "aligned": is_cross and pair.source_words[j] in linked,
            }[role]
    return cells


@pytest.mark.parametrize("rows", ["input", "output"])
@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_attention_in_pairs_equals_loops(bitext: Path, kind: Any, rows: str) -> None:
    model, tokenizer = make_model("bart"), make_tokenizer()
    asked: Any = {"attention": kind, "target_rows": rows, "roles": "position:-1,first,self"}
    if kind == "cross":
        asked["roles"] += ",aligned"
        asked |= {"beyond_offset": False, "controls": "none"}
    scores = score_heads(model, read_bitext(bitext), tokenizer=tokenizer, **asked)
    model.set_attn_implementation("eager")
    for name, given in zip(scores.ids, PAIRS, strict=True):
        pair = Pair(given, tokenizer, rows == "output")
        weights = pair.attention(model, kind)
        expected, words = between_units(pair, weights[1, 1], kind == "cross")
        for role in scores.role_ids:
            if np.isnan(scores.of_head((1, 1), role)[scores.ids.index(name)]):
                continue
            again = {"model": model, "tokenizer": tokenizer}
            (found,) = read_attention(scores, (1, 1), role, example=name, **again)
            assert found.words.tolist() == words.tolist()
            np.testing.assert_allclose(found.weights, expected, atol=1e-5)
            assert found.role_in_words == {r.id: r.words for r in scores.roles}[role]
            sieve, _ = between_units(pair, cells_of(pair, role, kind == "cross"), kind == "cross")
            assert (found.sieve == (sieve > 0)).all()
        n = len(given[0].split())
        own = attention_of(
            model, " ||| ".join(given[:2]), [(1, 1)], tokenizer=tokenizer, attention=kind
        )
        by_input, words = between_units(
            Pair(given, tokenizer, False), weights[1, 1], kind == "cross"
        )
        shown = by_input[words >= 0][:, words >= 0]
        columns = slice(0, n) if kind == "cross" else slice(n, None)
        np.testing.assert_allclose(own, shown[n:, columns], atol=1e-5)


def test_a_pair_of_the_users_own_is_shown(bitext: Path) -> None:
    model, tokenizer = make_model("bart"), make_tokenizer()
    scores = score_heads(model, read_bitext(bitext), tokenizer=tokenizer, attention="cross")
    asked: Any = {"model": model, "tokenizer": tokenizer}
    (found,) = read_attention(
        scores, (0, 1), "aligned", text="the dog ||| dog , the ||| 1-0 0-2", **asked
    )
    assert found.labels[1:3] == ("the", "dog")
    shown = {(found.labels[q], found.labels[k]) for q, k in np.argwhere(found.sieve)}
    assert shown == {("dog", "dog"), ("the", "the")}
    examples = find_examples(scores, (0, 1), "aligned", tokens=["dog", "|||", "dog"], **asked)
    assert examples.frame["text"][0] == "dog ||| dog"
    with pytest.raises(CorpusError, match="the pair: 'dog' is no line of the form source"):
        find_examples(scores, (0, 1), "aligned", text="dog", **asked)
    with pytest.raises(UsageError, match="parser has no effect on a pair"):
        find_examples(scores, (0, 1), "aligned", text="a ||| b", parser="p", **asked)


def test_the_command_reads_a_folder_and_a_bitext(bitext: Path, tmp_path: Path) -> None:
    (tmp_path / "many.bitext").write_text(3 * bitext.read_text("utf-8"), "utf-8")
    make_model("bart").save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    given = ("classify", tmp_path / "model", tmp_path / "many.bitext", "--out", tmp_path / "out")
    made = run(*given, "--attention", "cross", "--duplicates", "keep")
    assert made.exit_code == 0, made.output
    assert "Each token of the target sees all of the source." in made.stdout
    scores = HeadScores.load(tmp_path / "out")
    expected = scored(make_model("bart"), read_bitext(tmp_path / "many.bitext"), attention="cross")
    assert scores.role_ids == expected.role_ids
    assert scores.n_examples == 3 * len(PAIRS)


DEFECTS = [
    ("a b\n", {}, r"line 1: 'a b' is no line of the form source \|\|\| target, or source \|\|\| t"),
    ("a ||| b ||| 0-0 ||| c\n", {}, "line 1: .* is no line of the form"),
    ("a |||\n", {}, "line 1: .* is no line of the form"),
    ("a ||| b ||| 0-0\na ||| ||| 0-0\n", {}, "line 2"),
    ("a ||| b ||| 0-1\n", {}, r"'0-1' is no link of a word of the source, 0 to 0"),
    ("a ||| b ||| 0-0\n", {"links_from": 1}, r"'0-0' is no link .* 1 to 1"),
    ("a ||| b ||| 0:0\n", {}, "write 0-1, or 0p1 for a possible one"),
]


@pytest.mark.parametrize(("text", "options", "message"), DEFECTS)
def test_defective_lines_are_named(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    (tmp_path / "a.bitext").write_text(text, "utf-8")
    with pytest.raises(CorpusError, match=message):
        list(read_bitext(tmp_path / "a.bitext", **options))


def test_lines_without_links_are_pairs_without_an_alignment(tmp_path: Path) -> None:
    (tmp_path / "a.bitext").write_text("a b ||| c\na ||| b ||| 0-0\n", "utf-8")
    read = list(read_bitext(tmp_path / "a.bitext"))
    assert [sentence.words for sentence in read] == [("a", "b"), ("c",), ("a",), ("b",)]
    assert [bool(sentence.misc[0]) for sentence in read[1::2]] == [False, True]


def test_links_may_be_in_a_file_of_their_own(tmp_path: Path, bitext: Path) -> None:
    plain, links = tmp_path / "plain.bitext", tmp_path / "links.txt"
    plain.write_text("".join(f"{source} ||| {target}\n" for source, target, _ in PAIRS), "utf-8")
    numbered = [
        " ".join(f"{s + 1}{'p' if p else '-'}{t + 1}" for s, t, p in pair.links)
        for pair in (Pair(one, make_tokenizer(), False) for one in PAIRS)
    ]
    links.write_text("".join(f"{line}\n" for line in numbered), "utf-8")
    with_links = read_bitext(plain, links=str(links), links_from=1)
    for one, other in zip(read_bitext(bitext), with_links, strict=True):
        assert (one.words, one.misc) == (other.words, other.misc)
    links.write_text("1-1\n", "utf-8")
    with pytest.raises(CorpusError, match="differ in the number of their lines"):
        list(read_bitext(plain, links=str(links)))


# Attention of one's own


def own_attention(model: PreTrainedModel, kind: str) -> Any:
    """What a model returns, as a function of the pieces of a batch, which puts its first token."""
    model.set_attn_implementation("eager")

    def attend(pieces: dict[str, NDArray[np.int64]]) -> Any:
        inputs = {name: torch.tensor(values) for name, values in pieces.items()}
        inputs["decoder_input_ids"][:, 0] = START
        with torch.no_grad():
            outputs = model(**inputs, output_attentions=True, use_cache=False)
        return (layer for layer in outputs[f"{kind}_attentions"])

    return attend


@pytest.mark.parametrize("rows", ["input", "output"])
@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_own_attention_of_pairs_equals_that_of_the_model(
    bitext: Path, kind: str, rows: str
) -> None:
    options = {"attention": kind, "target_rows": rows, "roles": None}
    of_model = scored(make_model("bart"), read_bitext(bitext), **options)
    of_function = scored(own_attention(make_model("bart"), kind), read_bitext(bitext), **options)
    assert of_function.roles == of_model.roles
    assert of_function.record.model.attention == kind
    reaches = of_model.record.model.reaches_of_layers
    assert of_function.record.model.reaches_of_layers == reaches
    np.testing.assert_array_equal(of_function.counts, of_model.counts)
    assert_same_sums(of_function.values, of_model.values, sizes_of_scores(of_model), WEIGHTS)


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize("kind", ["cross", "decoder"])
def test_saved_attention_of_pairs_equals_that_of_the_model(
    bitext: Path, kind: str, is_padded: bool
) -> None:
    model, corpus, tokenizer = make_model("bart"), read_bitext(bitext), make_tokenizer()
    model.set_attn_implementation("eager")
    arrays = []
    for pair in PAIRS:
        weights = Pair(pair, tokenizer, by_output=False).attention(model, kind)
        if is_padded:
            weights = np.pad(weights, ((0, 0), (0, 0), (0, 3), (0, 2 if kind == "cross" else 3)))
        arrays.append(weights)
    of_model = scored(model, corpus, attention=kind)
    saved = score_attention(arrays, corpus, tokenizer, attention=kind)
    assert saved.roles == of_model.roles
    assert_same_sums(saved.values, of_model.values, sizes_of_scores(of_model), WEIGHTS)


def test_own_attention_of_pairs_is_checked(bitext: Path) -> None:
    def uniform(pieces: dict[str, NDArray[np.int64]], first: str, second: str) -> NDArray[Any]:
        queries, keys = pieces[f"{first}attention_mask"], pieces[f"{second}attention_mask"]
        weights = keys[:, None] / keys.sum(1)[:, None, None] + 0 * queries[:, :, None]
        return weights[:, None, None]

    corpus = read_bitext(bitext)
    turned = partial(uniform, first="", second="decoder_")
    with pytest.raises(ModelError, match=r"in layer 0 \(batch, heads, query, key\) = \(2, 1, "):
        scored(turned, corpus, attention="cross")
    looks_ahead = partial(uniform, first="decoder_", second="decoder_")
    with pytest.raises(ModelError, match=r"attention to later pieces of the target; in a decoder"):
        scored(looks_ahead, corpus, attention="decoder")
    uniform_across = partial(uniform, first="decoder_", second="")
    scores = scored(uniform_across, corpus, attention="cross")
    values = scores.column("aligned")
    np.testing.assert_allclose(values[~np.isnan(values)], 1, atol=1e-6)
    with pytest.raises(UsageError, match="gives attention weights alone"):
        scored(uniform_across, corpus, attention="cross", measure="norms")
    with pytest.raises(ModelError, match=r"must be \(2, 4, "):
        score_attention(
            [np.ones((2, 4, 3, 3)) / 3] * len(PAIRS), corpus, make_tokenizer(), attention="cross"
        )
