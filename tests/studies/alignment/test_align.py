"""Heads that align words, against loops over the attention that models return, and by hand."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from msgspec import structs
from scipy import stats
from tokenizers.models import WordPiece
from transformers import PreTrainedModel

import headroles as hr
from headroles.errors import (
    CorpusError,
    ModelSupportError,
    StorageError,
    TokenizerError,
    UsageError,
)
from headroles.inference.ratios import ratio_values
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.remaining import Head
from headroles.models.heads.stack import find_stack
from headroles.models.heads.surgery import remove_rows, zero_heads
from headroles.report import draw_error_rates, draw_links
from headroles.studies.alignment.align import AlignOptions, DrawnPair, WordAlignment
from headroles.studies.alignment.evidence import WHOLE_LAYER, AlignedPairs, Errors, shares_of
from headroles.studies.alignment.head_sets import NO_LINK
from headroles.studies.alignment.links import Choices, LinkCounts, WordMaps
from headroles.studies.claims.claims import CLAIMS
from headroles.testing.hypotheses import Hypotheses
from tests.commands import run, run_well
from tests.conftest import make_bert, make_tokenizer
from tests.models.test_tokenizers import m2m
from tests.scoring.test_targets import PAIRS, Pair
from tests.scoring.test_targets import make_model as make_translator

LONG = ("the old dog sees " * 40, "a dog", "0-0")
"""A pair that is longer than models of tests take."""


def make_model(kind: str) -> PreTrainedModel:
    """A model with random weights whose target words differ in what they attend to."""
    model = make_translator(kind)
    for name, parameter in model.named_parameters():
        if name.endswith("encoder_attn.q_proj.weight"):
            parameter.data *= 5
    return model


def write(folder: Path, pairs: list[tuple[str, ...]], name: str = "pairs.bitext") -> Path:
    (folder / name).write_text("".join(f"{' ||| '.join(pair)}\n" for pair in pairs), "utf-8")
    return folder / name


@pytest.fixture(scope="module")
def bitext(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("bitext"), PAIRS)


def align(model: PreTrainedModel, bitext: Any, **options: Any) -> WordAlignment:
    corpus = bitext if not isinstance(bitext, Path) else hr.read_bitext(bitext)
    return hr.align_words(model, corpus, tokenizer=make_tokenizer(), **options)


# By hand.


def maps_of(sure: np.ndarray, possible: np.ndarray) -> WordMaps:
    """A batch of pairs without tokens, whose links (B, V, W) are given."""
    n, n_target, n_source = sure.shape
    return WordMaps(
        from_words=np.ones((n, n_target, 1), dtype=np.float32),
        to_places=np.zeros((n, 1, n_source), dtype=np.float32),
        n_words=np.tile([n_source, n_target], (n, 1)),
        sure=sure,
        possible=possible | sure,
    )


def counted(maps: WordMaps, chosen: np.ndarray) -> LinkCounts:
    """The counts of one batch in which aligners choose (B, C, V)."""
    counts = LinkCounts.empty(len(chosen), chosen.shape[1])
    counts.put(np.arange(len(chosen)), maps, Choices(chosen, np.ones(chosen.shape[:2])))
    return counts.of_first(len(chosen))


def test_the_published_example() -> None:
    """S = {(1,1),(2,3)}, P = S and (2,2), A = {(1,1),(2,2),(3,3)}: 1 - (1 + 2) / (3 + 2)."""
    sure, possible = np.zeros((2, 1, 3, 3), dtype=bool)
    sure[0, 0, 0] = sure[0, 2, 1] = possible[0, 1, 1] = True
    maps = maps_of(sure, possible)
    counts = counted(maps, np.array([[[0, 1, 2], [NO_LINK, 0, 1]]]))
    shares = shares_of(counts)
    rates = Errors.from_counts(counts.found, counts.sure).rates
    np.testing.assert_allclose(rates, [0.4, 1 - (1 + 1) / (2 + 2)])
    np.testing.assert_allclose(shares["precision"], [2 / 3, 1 / 2])
    np.testing.assert_allclose(shares["recall"], [1 / 2, 1 / 2])
    np.testing.assert_allclose(shares["f1"], [4 / 7, 1 / 2])
    np.testing.assert_allclose(shares["linked"], [1, 2 / 3])


def test_the_diagonal_links_words_at_the_same_part_of_the_sentence() -> None:
    nothing = np.zeros((1, 4, 2), dtype=bool)
    assert maps_of(nothing, nothing).diagonal().tolist() == [[[0, 0, 1, 1]]]
    nothing = np.zeros((1, 2, 6), dtype=bool)
    assert maps_of(nothing, nothing).diagonal().tolist() == [[[1, 4]]]


def test_values_of_ratios_have_the_ratio_as_mean_and_the_error_of_the_jackknife() -> None:
    rng = np.random.default_rng(0)
    bottoms = rng.integers(5, 40, size=(400, 1))
    tops = rng.binomial(bottoms, rng.beta(4, 2, size=(400, 1)))
    values = ratio_values(tops, bottoms)[:, 0]
    assert values.mean() == pytest.approx(tops.sum() / bottoms.sum(), abs=1e-14)
    error = values.std(ddof=1) / np.sqrt(len(values))
    without = (tops.sum() - tops[:, 0]) / (bottoms.sum() - bottoms[:, 0])
    jackknife = np.sqrt((len(without) - 1) * without.var())
    assert error == pytest.approx(jackknife, rel=0.01)
    drawn = stats.bootstrap(
        (tops[:, 0], bottoms[:, 0]),
        lambda top, bottom, axis: top.sum(axis) / bottom.sum(axis),
        paired=True,
        n_resamples=2000,
        method="percentile",
        rng=rng,
    )
    assert error == pytest.approx(drawn.standard_error, rel=0.1)


def test_intervals_have_the_error_rate_of_the_population() -> None:
    """2,000 samples of 30 pairs, as columns, whose lengths and difficulties vary."""
    rng = np.random.default_rng(1)
    of = rng.integers(5, 40, size=(30, 2000))
    errors = Errors(rng.binomial(of, rng.beta(6, 2, size=of.shape)), of)
    tests = Hypotheses.from_values(errors.values, 0.0, size=1.0)
    limits = tests.intervals(0.05)
    has_it = (limits.ci_low <= 0.25) & (limits.ci_high >= 0.25)
    assert 0.93 <= has_it.mean() <= 0.97


def pairs_by_hand(right: np.ndarray) -> AlignedPairs:
    """Heads of one layer, each with ``right`` (n, heads) of 10 links in every pair."""
    n, n_heads = right.shape
    labels = pd.DataFrame({"measure": "weights", "layer": 0, "head": range(n_heads)})
    in_second = np.arange(n) % 2 == 1
    half = np.full((n, 1), 5)
    return AlignedPairs(
        labels,
        Errors(right, np.full(right.shape, 10)),
        Errors(half, 2 * half),
        None,
        (~in_second, in_second),
    )


def test_the_best_other_head_of_a_half_is_chosen_on_the_other_half() -> None:
    right = np.array([[9, 2, 5], [1, 8, 5]] * 6) + np.arange(12)[:, None] % 3 // 2
    pairs = pairs_by_hand(right)
    errors = 1 - right / 10
    # in pairs of the first half head 0 is best, in those of the second head 1
    swapped, of_others = np.tile([False, True], 6), pairs.rivals()
    for head, (of_first, of_second) in enumerate([(1, 2), (2, 0), (1, 0)]):
        expected = np.where(swapped, errors[:, of_second], errors[:, of_first])
        assert of_others[:, head].mean() == pytest.approx(expected.mean())
        np.testing.assert_allclose(of_others[:, head], expected)
    assert pairs.best("weights", pairs.halves[0]) == [0, 2, 1]
    assert pairs.best("weights", pairs.halves[1]) == [1, 2, 0]


def test_answers_are_of_paired_differences() -> None:
    rng = np.random.default_rng(0)
    right = np.stack([rng.binomial(10, share, 60) for share in (0.9, 0.5, 0.1)], axis=1)
    pairs = pairs_by_hand(right)
    tested = pairs.tests(AlignOptions())
    assert tested["answer"].tolist() == ["yes", "undecided", "no"]
    assert tested["leads"].tolist() == ["yes", "no", "no"]
    t = stats.ttest_1samp(0.5 - (1 - right / 10), 0, alternative="greater")
    np.testing.assert_allclose(tested["p_value"], t.pvalue)
    interval = stats.t.interval(0.95, 59, *_mean_and_error(1 - right / 10))
    np.testing.assert_allclose([tested["ci_low"], tested["ci_high"]], interval)


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.mean(axis=0), stats.sem(values)


# Against loops.


def shares_by_vectors(model: PreTrainedModel, tokens: Pair) -> list[np.ndarray]:
    """Norms of each layer (heads + 1, query, key), from a vector for every head, query and key."""
    weights = torch.from_numpy(tokens.attention(model, "cross"))
    with torch.no_grad():
        states = model.get_encoder()(input_ids=torch.tensor([tokens.source])).last_hidden_state[0]
    layers = []
    for of_layer, layer in zip(weights, model.get_decoder().layers, strict=True):
        attention, n_heads = layer.encoder_attn, len(of_layer)
        values = attention.v_proj(states).double().view(len(states), n_heads, -1)
        out = attention.out_proj.weight.double().view(len(states[0]), n_heads, -1)
        vectors = of_layer[..., None] * torch.einsum("khs,dhs->hkd", values, out)[:, None]
        norms = torch.cat([vectors.norm(dim=-1), vectors.sum(dim=0).norm(dim=-1)[None]])
        layers.append((norms / norms.sum(dim=-1, keepdim=True)).detach().numpy())
    return layers


def first_choices(tokens: Pair, attention: np.ndarray) -> np.ndarray:
    """The source word, or `NO_LINK`, that each target word chooses in (..., query, key)."""
    n_source = max(tokens.source_words) + 1
    places = [[j for j, own in enumerate(tokens.source_words) if own == k] for k in range(n_source)]
    places += [[j] for j, own in enumerate(tokens.source_words) if own < 0]
    chosen = []
    for word in range(max(tokens.target_words) + 1):
        rows = [i for i, own in enumerate(tokens.target_words) if own == word]
        given = [
            np.mean([attention[..., i, own].sum(axis=-1) for i in rows], axis=0) for own in places
        ]
        chosen.append(np.argmax(given, axis=0))
    found = np.stack(chosen, axis=-1)
    return np.where(found < n_source, found, NO_LINK)


def expected_rows(choices: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Counts over all pairs, from the choices of aligners (..., target words) in each."""
    links, right = 0, 0
    found, n_sure, n_words = 0, 0, 0
    for pair, chosen in zip(PAIRS, choices, strict=True):
        tokens = Pair(pair, make_tokenizer(), by_output=False)
        sure = {(s, t) for s, t, is_possible in tokens.links if not is_possible}
        possible = {(s, t) for s, t, _ in tokens.links}
        n_sure, n_words = n_sure + len(sure), n_words + chosen.shape[-1]
        for t in range(chosen.shape[-1]):
            links = links + (chosen[..., t] != NO_LINK)
            found = found + np.any([chosen[..., t] == s for s, own in sure if own == t] or [0], 0)
            joined = [chosen[..., t] == s for s, own in possible if own == t]
            right = right + np.any(joined or [0], axis=0)
    return {
        "links": links,
        "linked": links / n_words,
        "precision": right / np.where(links > 0, links, np.nan),
        "recall": found / n_sure,
        "aer": 1 - (found + right) / (links + n_sure),
    }


def check_rows(rows: pd.DataFrame, expected: dict[str, np.ndarray]) -> None:
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name], np.ravel(values), atol=1e-12, err_msg=name)


@pytest.mark.numbers
@pytest.mark.parametrize("target_rows", ["input", "output"])
@pytest.mark.parametrize("kind", ["bart", "marian", "t5", "m2m_100"])
def test_counts_equal_loops_over_the_attention_that_models_return(
    bitext: Path, kind: str, target_rows: Any
) -> None:
    model = make_model(kind)
    found = align(model, bitext, target_rows=target_rows, top=1)
    model.set_attn_implementation("eager")
    read = [Pair(pair, make_tokenizer(), target_rows == "output") for pair in PAIRS]
    weights = []
    for tokens in read:
        heads = tokens.attention(model, "cross")
        whole = np.concatenate([heads, heads.mean(axis=1, keepdims=True)], axis=1)
        weights.append(first_choices(tokens, whole))
    frame = found.frame
    check_rows(frame[frame["measure"] == "weights"], expected_rows(weights))
    if kind != "t5":  # whose projections have other names
        norms = [np.stack(shares_by_vectors(model, tokens)) for tokens in read]
        chosen = [first_choices(tokens, own) for tokens, own in zip(read, norms, strict=True)]
        check_rows(frame[frame["measure"] == "norms"], expected_rows(chosen))
    assert len({*np.concatenate([chosen.reshape(-1) for chosen in weights])}) > 3
    assert frame["n"].eq(len(PAIRS)).all()
    assert found.facts["sure"] == sum(
        len({(s, t) for s, t, is_possible in tokens.links if not is_possible}) for tokens in read
    )


@pytest.mark.numbers
def test_heads_together_are_their_average_and_batches_do_not_matter(
    bitext: Path, tmp_path: Path
) -> None:
    model, heads = make_model("bart"), ((0, 1), (1, 0))
    written = []
    for number, size in enumerate((1, 10_000)):
        out = tmp_path / f"{number}.links"
        found = align(model, bitext, links_of=heads, write_links=out, batch_tokens=size, top=2)
        written.append(out.read_text())
    assert written[0] == written[1]
    assert found.facts["links_of"] == [(0, 1), (1, 0)]
    model.set_attn_implementation("eager")
    for pair, line in zip(PAIRS, written[0].splitlines(), strict=True):
        tokens = Pair(pair, make_tokenizer(), by_output=False)
        attention = tokens.attention(model, "cross")
        chosen = first_choices(tokens, (attention[0, 1] + attention[1, 0]) / 2)
        links = sorted((s, t) for t, s in enumerate(chosen) if s != NO_LINK)
        assert line == " ".join(f"{s}-{t}" for s, t in links)


@pytest.mark.parametrize("heads", [[(0, 1)], [(1, 0), (1, 1)]])
def test_heads_of_a_smaller_model_are_those_of_the_full_size(
    bitext: Path, heads: list[Head]
) -> None:
    """One head of a layer removed, or all, beside the model with zeros as their outputs."""
    frames = []
    for remove in (remove_rows, zero_heads):
        model = make_model("bart")
        remove(HeadSites(find_stack(model, "cross")), heads)
        frames.append(align(model, bitext, top=2).frame.set_index(["measure", "layer", "head"]))
        if remove is remove_rows:
            with pytest.raises(UsageError, match="was removed from the model; name another one"):
                align(model, bitext, links_of=heads)
    counted = ["links", "linked", "precision", "recall", "aer"]
    removed, zeroed = frames
    lost = {layer for layer in (0, 1) if len({head for at, head in heads if at == layer}) == 2}
    for measure, layer, head in removed.index:
        row = removed.loc[measure, layer, head]
        if (layer, head) in heads or (head == WHOLE_LAYER and layer in lost):
            assert row[["linked", "precision", "aer", "gain", "lead"]].isna().all()
            assert (row["answer"], row["leads"]) == ("untestable", "untestable")
        elif (measure, head) != ("weights", WHOLE_LAYER):  # the mean of fewer heads
            expected = zeroed.loc[measure, layer, head]
            assert row[counted].tolist() == expected[counted].tolist()


def test_a_model_without_cross_attention_is_refused(bitext: Path) -> None:
    model = make_model("bart")
    remove_rows(HeadSites(find_stack(model, "cross")), [(0, 0), (0, 1), (1, 0), (1, 1)])
    with pytest.raises(UsageError, match="all heads of cross-attention are removed"):
        align(model, bitext)


def test_means_of_the_best_heads_are_counted_on_the_other_half(bitext: Path) -> None:
    found = align(make_model("bart"), bitext, top=2, duplicates="keep")
    best = found.best()
    assert list(zip(best["measure"], best["half"], strict=True)) == [
        (measure, half) for measure in ("weights", "norms") for half in (1, 2)
    ]
    assert best["n"].tolist() == [3, 3, 3, 3]
    assert (best["heads"].str.split().str[0] == best["head"]).all()
    np.testing.assert_allclose(best["together_gain"], best["aer"] - best["together"])
    alone = align(make_model("bart"), bitext, top=1, duplicates="keep").best()
    pd.testing.assert_frame_equal(alone[["head", "aer", "gain"]], best[["head", "aer", "gain"]])
    assert alone["together"].isna().all()


# Files of links.


@pytest.mark.parametrize("links_from", [0, 1])
def test_links_that_are_written_are_an_alignment_to_read(tmp_path: Path, links_from: Any) -> None:
    sources = [(source, target, "") for source, target, _ in PAIRS]
    bitext = hr.read_bitext(write(tmp_path, sources), links_from=links_from)
    out = tmp_path / "out.links"
    align(make_model("bart"), bitext, links_of="1-0", write_links=out)
    plain = write(tmp_path, [pair[:2] for pair in sources], "plain.bitext")
    own = hr.read_bitext(plain, links=out, links_from=links_from)
    rows = align(make_model("bart"), own).frame
    of_head = rows[(rows["layer"] == 1) & (rows["head"] == 0) & (rows["measure"] == "weights")]
    assert of_head[["aer", "precision", "recall", "f1"]].to_numpy().tolist() == [[0, 1, 1, 1]]


def test_the_other_way_round_is_the_exchanged_bitext(tmp_path: Path) -> None:
    """By a model of several languages, whose codes go with the texts."""
    model, tokenizer = make_model("m2m_100"), m2m(tmp_path)
    bitext = write(tmp_path, PAIRS)
    exchanged = write(
        tmp_path, [(t, s, _exchanged(links)) for s, t, links in PAIRS], "other.bitext"
    )
    codes = {"source_language": "en", "target_language": "de"}
    other_codes = {"source_language": "de", "target_language": "en"}
    runs = [(bitext, codes, True), (exchanged, other_codes, False), (bitext, codes, False)]
    found = [
        hr.align_words(
            model,
            hr.read_bitext(path, links_from=0),
            tokenizer=tokenizer,
            reverse=reverse,
            write_links=tmp_path / f"{number}.links",
            **languages,
        )
        for number, (path, languages, reverse) in enumerate(runs)
    ]
    pd.testing.assert_frame_equal(found[0].frame, found[1].frame)
    assert not found[0].frame.equals(found[2].frame)
    assert "read the other way round" in str(found[0])
    lines, others = ((tmp_path / f"{k}.links").read_text().splitlines() for k in (0, 1))
    assert lines == [_exchanged(line) for line in others]
    assert any(line != other for line, other in zip(lines, others, strict=True))


def _exchanged(links: str) -> str:
    """Links with their ends exchanged, in order."""
    ends = [
        (link.replace("p", "-").split("-"), "p" if "p" in link else "-") for link in links.split()
    ]
    return " ".join(
        f"{s}{mark}{t}" for s, t, mark in sorted((int(t), int(s), m) for (s, t), m in ends)
    )


def test_a_pair_that_is_not_read_has_an_empty_line(tmp_path: Path) -> None:
    bitext, out = write(tmp_path, [PAIRS[0], LONG, PAIRS[1], PAIRS[2]]), tmp_path / "out"
    bitext.write_text(bitext.read_text().replace("dogs bark", "\na ||| b ||| 1-0\ndogs bark", 1))
    corpus = hr.read_bitext(bitext, on_bad_sentence="skip")
    found = align(make_model("bart"), corpus, write_links=out)
    assert [bool(line) for line in out.read_text().split("\n")] == [
        *(True, False, False, False, True, True),
        False,
    ]
    assert found.record.corpus.skipped == {
        "defective pairs": 1,
        "examples longer than the model takes": 1,
    }
    assert str(out) in str(found)


# Without an alignment, and other input.


def test_without_an_alignment_no_errors_are_counted(tmp_path: Path) -> None:
    bitext, out = write(tmp_path, [(one, two, "") for one, two, _ in PAIRS]), tmp_path / "out"
    found = align(make_model("bart"), bitext, write_links=out, top=1)
    assert not found.has_errors
    assert "errors cannot be counted" in str(found)
    assert found.frame[["aer", "precision", "recall", "gain", "lead"]].isna().all(axis=None)
    assert found.frame["answer"].eq("untestable").all()
    assert found.best().empty
    heads = found.frame[found.frame["head"] != WHOLE_LAYER]
    first = heads[heads["measure"] == "weights"].nlargest(1, "confidence").iloc[0]
    assert found.facts["links_of"] == [(first["layer"], first["head"])]
    assert len(out.read_text().splitlines()) == len(PAIRS)
    with pytest.raises(UsageError, match="no error rates to draw"):
        draw_error_rates(found)
    assert len(draw_links(found).axes) == 2
    assert hr.load(found.save(tmp_path / "kept")).frame.equals(found.frame)


def test_pairs_without_links_are_not_counted_as_errors(tmp_path: Path) -> None:
    some = write(tmp_path, PAIRS[:3], "some.bitext")
    more = write(tmp_path, [*PAIRS[:3], ("dogs eat bones", "bones", "")], "more.bitext")
    of_some, of_more = (align(make_model("bart"), path).frame for path in (some, more))
    shared = ["n", "aer", "precision", "recall", "f1"]
    pd.testing.assert_frame_equal(of_some[shared], of_more[shared])
    assert of_more["links"].sum() > of_some["links"].sum()


WRONG = [
    ({"links_of": "7-0"}, UsageError, "no cross-attention head 7-0; it has 2 layers of 2 heads"),
    ({"links_of": "best"}, UsageError, "it must be layer-head"),
    ({"write_links": "none/out"}, StorageError, "the folder for the links, does not exist"),
    ({"target_language": "de"}, UsageError, "knows no language 'de'"),
]


@pytest.mark.parametrize(("options", "error", "message"), WRONG)
def test_what_cannot_be_done_is_refused(
    bitext: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        align(make_model("bart"), bitext, **options)


def test_other_models_and_texts_are_refused(bitext: Path, sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelSupportError, match="BERT has no cross attention"):
        align(make_bert(), bitext)
    with pytest.raises(UsageError, match="give a bitext"):
        align(make_model("bart"), hr.read_conllu(sample))
    possible = write(tmp_path, [("a dog", "a dog", "0p0 1p1")])
    with pytest.raises(CorpusError, match="all links of the bitext are possible ones"):
        align(make_model("bart"), possible)
    with pytest.raises(CorpusError, match="no pair could be read: 1 examples longer than"):
        align(make_model("bart"), write(tmp_path, [LONG]))


def test_one_pair_has_no_interval_and_no_answer(tmp_path: Path) -> None:
    found = align(make_model("bart"), write(tmp_path, PAIRS[:1]))
    assert found.frame["aer"].notna().all()
    assert found.frame[["ci_low", "p_value"]].isna().all(axis=None)
    assert set(found.frame["answer"]) == {"untestable"}
    assert found.best().empty


def test_a_drawn_pair_has_no_link_of_no_word() -> None:
    with pytest.raises(ValueError, match="a link of no word"):
        DrawnPair("a", ["one"], ["eins"], [(0, 1)], [], [])


def test_results_that_were_changed_are_refused(bitext: Path, tmp_path: Path) -> None:
    """Whoever sends a folder can write facts that fit their digests."""
    found = align(make_model("bart"), bitext, duplicates="keep")
    facts = found.record.facts

    def saved(number: int, **change: Any) -> Path:
        record = structs.replace(found.record, facts={**facts, **change})
        return replace(found, record=record).save(tmp_path / str(number))

    for number, change in enumerate(
        (
            {"best": [{"measure": "weights"}]},
            {"best": [{**facts["best"][0], "aer": "few"}]},
            {"drawn": [{**facts["drawn"][0], "links": [[90, 0]]}]},
            {"links_of": ["1-0"]},
        )
    ):
        with pytest.raises(StorageError):
            hr.load(saved(number, **change))
    with pytest.raises(UsageError, match="no pair of sentences to draw"):
        draw_links(hr.load(saved(9, drawn=[])))


def test_figures_and_the_page_have_error_rates_and_links(bitext: Path) -> None:
    found = align(make_model("bart"), bitext, top=1)
    by_weights, _ = draw_error_rates(found).axes
    shown = [text.get_text() for text in by_weights.texts]
    rates = found.frame[found.frame["measure"] == "weights"]["aer"]
    assert shown == [f"{100 * rate:.0f}" for rate in rates if rate > 0]
    assert by_weights.get_xticklabels()[-1].get_text() == "all"
    axes = draw_links(found).axes
    for ax, pair in zip(axes, found.facts["drawn"], strict=True):
        assert [text.get_text() for text in ax.texts] == [*pair.source, *pair.target]
        missed = set(pair.sure) - set(pair.links)
        assert len(ax.lines) == len(pair.links) + len(missed)


def test_the_command_writes_table_links_and_page(bitext: Path, tmp_path: Path) -> None:
    make_model("bart").save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    out, links = tmp_path / "out", tmp_path / "a.links"
    given = ("align", tmp_path / "model", bitext, "--out", out, "--top", 2)
    made = run_well(*given, "--write-links", links, "--links-by", "norms", "--report")
    assert "Chosen on one half of the pairs, counted on the other" in made.stdout
    assert len(links.read_text().splitlines()) == len(PAIRS)
    expected = align(make_model("bart"), bitext, top=2, links_by="norms")
    pd.testing.assert_frame_equal(hr.load(out).frame, expected.frame)
    page = (out / "report.html").read_text("utf-8")
    assert "Which heads align words with their translations?" in page
    assert page.count("<figure>") == 2
    drawn = run("figure", out, "--kind", "links", "--out", tmp_path / "links.svg")
    assert drawn.exit_code == 0, drawn.output
    exported = run_well("export", out, "--view", "best").stdout
    assert exported.startswith("measure,half,n,head,aer")


def test_a_tokenizer_of_another_model_is_named(tmp_path: Path) -> None:
    unknown = [("щука ждёт", "жаба ест", "0-0 1-1"), ("жаба ждёт", "щука ест", "0-0 1-1")]
    with pytest.raises(TokenizerError, match="100% of the word pieces of the bitext are unknown"):
        align(make_model("bart"), write(tmp_path, unknown))
    known = [("the dog", "a dog жаба", "0-0 1-1")]
    found = align(make_model("bart"), write(tmp_path, known))
    assert "warning: the tokenizer does not know" in str(found)


def test_a_tokenizer_of_targets_of_another_model_is_refused(bitext: Path) -> None:
    """One whose pieces have other numbers; those of the model may be cut in another way."""
    vocabulary = make_tokenizer().get_vocab()
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    other, same = make_tokenizer(), make_tokenizer()
    for tokenizer, shift in ((other, 1), (same, 0)):
        numbers = {
            piece: k for k, piece in enumerate([*pieces[5:], *pieces[:5]] if shift else pieces)
        }
        tokenizer.backend_tokenizer.model = WordPiece(numbers, unk_token="[UNK]")
    align(make_model("marian"), bitext, target_tokenizer=same)
    with pytest.raises(TokenizerError, match=r"of targets, .* numbers \d+ alike, and the model"):
        align(make_model("marian"), bitext, target_tokenizer=other)
    model = make_model("marian")  # now with two lists of pieces
    model.decoder.embed_tokens = copy.deepcopy(model.decoder.embed_tokens)
    align(model, bitext, target_tokenizer=other)


# Claims.


def pairs_of(errors: dict[tuple[str, int, int], float], of_diagonal: float) -> AlignedPairs:
    """Pairs of 100 links each, with the same error rates (measure, layer, head) in all."""
    labels = pd.DataFrame(list(errors), columns=["measure", "layer", "head"])
    right = np.tile(np.round(100 * (1 - np.array(list(errors.values())))).astype(int), (6, 1))
    diagonal = np.full((6, 1), round(100 * (1 - of_diagonal)))
    in_second = np.arange(6) % 2 == 1
    return AlignedPairs(
        labels,
        Errors(right, np.full(right.shape, 100)),
        Errors(diagonal, np.full((6, 1), 100)),
        None,
        (~in_second, in_second),
    )


def test_claims_about_aligned_words_describe_hand_made_errors() -> None:
    read = {
        **{("weights", layer, head): 0.4 + 0.1 * layer for layer in range(3) for head in (0, 1)},
        **{("weights", layer, WHOLE_LAYER): 0.35 + 0.1 * layer for layer in range(3)},
        **{("norms", layer, head): 0.38 + 0.1 * layer for layer in range(3) for head in (0, 1)},
        **{("norms", layer, WHOLE_LAYER): 0.25 + 0.1 * layer for layer in range(3)},
    }
    written = {**dict.fromkeys(read, 0.7), ("weights", 1, WHOLE_LAYER): 0.5}
    by_rows = {"input": pairs_of(read, 0.8), "output": pairs_of(written, 0.8)}
    measured: Any = SimpleNamespace(aligned=by_rows.__getitem__)
    found = {
        name: CLAIMS[name].test(measured)  # type: ignore[misc]
        for name in ("norms-align-layers", "input-aligns", "penultimate-aligns")
    }
    effects = {name: (one.effect, one.control) for name, one in found.items()}
    assert effects["norms-align-layers"] == pytest.approx((0.1, 0.02))
    assert effects["input-aligns"] == pytest.approx((0.3, 0.0))
    assert effects["penultimate-aligns"] == pytest.approx((0.2, 0.0))
    assert {(one.n, one.unit) for one in found.values()} == {(6, "pairs")}


def test_claims_of_a_translation_model_are_about_its_aligned_words(
    bitext: Path, tmp_path: Path
) -> None:
    model = make_model("bart")
    table = hr.test_claims(model, hr.read_bitext(bitext), tokenizer=make_tokenizer())
    rows = table.frame.set_index("claim")
    described = rows[rows["verdict"] == "described"]
    of_links = ["norms-align-layers", "input-aligns", "penultimate-aligns"]
    assert list(described.index) == [*of_links, "special-tokens-across"]
    others = rows[rows["verdict"] == "not testable"]
    assert len(others) + len(described) == len(CLAIMS)
    assert "the corpus is a bitext; give sentences" in others.loc["single-heads", "note"]
    alignment = align(model, bitext, top=1)
    by_measure = alignment.frame.groupby("measure")["aer"]
    assert described.loc[of_links, "effect"].abs().max() <= by_measure.max().max()
    assert hr.load(table.save(tmp_path / "out")).frame.equals(table.frame)
    unaligned = write(tmp_path, [(one, two, "") for one, two, _ in PAIRS])
    without = hr.test_claims(model, hr.read_bitext(unaligned), tokenizer=make_tokenizer())
    verdicts = without.frame.set_index("claim")["verdict"]
    assert set(verdicts.drop("special-tokens-across")) == {"not testable"}
    assert "fewer than two pairs of the bitext are aligned" in set(without.frame["note"])


def test_claims_about_aligned_words_need_a_bitext(bert_folder: Path, sample: Path) -> None:
    named = "input-aligns,separators-middle"
    table = hr.test_claims(bert_folder, hr.read_conllu(sample), claims=named)
    assert table.frame["verdict"].iloc[0] == "not testable"
    assert table.frame["note"].iloc[0].startswith("give a translation model, and a bitext")
