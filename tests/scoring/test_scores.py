"""The table of scores and the description of a run: content, files, how they are shown."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from headroles import score_heads
from headroles.corpus import read_conllu
from headroles.encoding import NO_PIECES, TOO_LONG
from headroles.errors import CorpusError, StorageError, UsageError
from headroles.record import PieceCounts, Record
from headroles.results.shown import Warned
from headroles.roles import BIAS
from headroles.scoring.run_notes import describe_run, warnings_of_run
from headroles.scoring.scores import HeadScores
from headroles.scoring.tables import EXAMPLES_FILE, SCORES_FILE, write_blocks
from headroles.storage import RUN_FILE, digests_of, read_run, write_run
from tests.conftest import CAT, DOG, conllu_sentence, make_bert, make_roles, make_tokenizer

ROLES = ("local", "block", "syntactic:nsubj:to_governor")


def make_block(first: int = 0, examples: int = 5) -> HeadScores:
    """Random scores; every third example lacks role 1, and nothing has the last role."""
    rng = np.random.default_rng(first)
    counts = rng.integers(1, 30, (examples, 3))
    counts[::3, 1] = 0
    counts[:, -1] = 0
    values = rng.gamma(2.0, size=(examples, 2, 3, 3)).astype(np.float32)
    values[np.broadcast_to((counts == 0)[:, None, None], values.shape)] = np.nan
    numbers = range(first, first + examples)
    return HeadScores(
        ids=tuple(f"sätze {n}" for n in numbers),
        documents=tuple(f"document {n // 3}" for n in numbers),
        roles=make_roles(ROLES),
        lengths=rng.integers(3, 60, examples),
        values=values,
        counts=counts,
        digests=tuple(f"{n:016x}" for n in numbers),
        bounds=np.where(counts[..., None] > 0, [0, 60], np.nan).astype(np.float32),
    )


def make_scores(*blocks: HeadScores) -> HeadScores:
    return HeadScores.joined(blocks or (make_block(),), Record())


def assert_equal(left: HeadScores, right: HeadScores) -> None:
    assert left == right
    for name in ("lengths", "values", "counts", "bounds"):
        assert getattr(left, name).dtype == getattr(right, name).dtype
    assert left.bounds is not None
    assert left.bounds.dtype == np.float32


def test_save_and_load_give_the_same_scores(tmp_path: Path) -> None:
    """Among their roles is a baseline of 0, which is not the same as no baseline."""
    roles = make_roles(("local", "syntactic:nsubj:to_governor:beyond_offset", "block"))
    scores = replace(make_scores(), roles=roles)
    assert scores.save(tmp_path / "out") == tmp_path / "out"
    loaded = HeadScores.load(tmp_path / "out")
    assert_equal(loaded, scores)
    assert loaded.roles == roles
    assert [role.baseline for role in loaded.roles] == [None, 0.0, None]
    assert loaded.roles[0].meaning == {"window": 2, "published_edge": False}
    assert loaded.roles[1].unit == "arcs"
    assert loaded.score is BIAS
    stored = pq.read_table(tmp_path / "out" / SCORES_FILE).to_pandas()
    texts = {"example": str, "role": str}
    assert stored.astype(texts).equals(scores.frame.astype(texts))
    without = replace(scores, bounds=None)
    assert HeadScores.load(without.save(tmp_path / "without")).bounds is None


def test_scores_written_block_by_block_load_as_one(tmp_path: Path) -> None:
    blocks = [make_block(0, 4), make_block(4, 1), make_block(5, 6)]
    for last in (blocks[-1], replace(blocks[-1], digests=[])):  # which all have, or none has
        blocks[-1] = last
        scores = make_scores(*blocks)
        fields = (block.as_fields for block in blocks)
        files = {HeadScores.kind: digests_of(tmp_path, write_blocks(tmp_path, fields))}
        write_run(tmp_path, {HeadScores.kind: scores.record}, files)
        assert pq.ParquetFile(tmp_path / SCORES_FILE).num_row_groups == len(blocks)
        assert_equal(HeadScores.load(tmp_path), scores)
    whole = HeadScores.load(scores.save(tmp_path / "whole"))
    assert HeadScores.load(tmp_path).digests == whole.digests == scores.digests == ()


def test_long_table_has_a_row_per_score() -> None:
    scores = make_scores()
    frame = scores.frame
    assert list(frame.columns) == ["example", "layer", "head", "role", "score", "count"]
    assert len(frame) == np.isfinite(scores.values).sum()
    assert frame["score"].notna().all()
    assert ROLES[-1] not in set(frame["role"])
    for row in frame.sample(20, random_state=0).itertuples():
        example, role = scores.ids.index(row.example), ROLES.index(row.role)
        assert row.score == scores.values[example, row.layer, row.head, role]
        assert row.count == scores.counts[example, role]


def test_shows_its_size_and_in_full_the_strongest_head_of_each_role_with_scores() -> None:
    scores = make_scores()
    assert repr(scores).startswith("2 layers x 3 heads, 3 roles, 5 examples\n")
    assert (scores.n_layers, scores.n_heads, scores.n_examples) == (2, 3, 5)
    assert "2 layers x 3 heads" in scores._repr_html_()
    rows = [line.split()[-4:] for line in scores.in_full().partition("Means\n")[2].splitlines()[1:]]
    assert [row[0] for row in rows] == ["5", "3"]  # examples; the third role has no score
    for role, row in enumerate(rows):
        means = np.nanmean(scores.values[..., role], axis=0)
        layer, head = np.unravel_index(means.argmax(), means.shape)
        assert row[1:] == [f"{means.mean():.3f}", f"{layer}-{head}", f"{means.max():.3f}"]


def test_means_are_those_of_loops_over_the_examples_that_have_a_score() -> None:
    scores = make_scores()
    means = scores.means().set_index(["role", "layer", "head"])
    assert {role for role, _, _ in means.index} == {*ROLES[:2]}
    for (role, layer, head), row in means.iterrows():
        some = [float(one) for one in scores.of_head((layer, head), role) if not np.isnan(one)]
        assert row["n"] == len(some)
        assert row["mean"] == pytest.approx(sum(some) / len(some), rel=1e-6)


def test_scores_export_and_draw_as_every_result_does() -> None:
    scores = make_scores()
    assert scores.export("csv").decode().count("\n") == 1 + len(scores.frame)
    means = pd.read_csv(io.BytesIO(scores.export("csv", view="means")))
    assert np.allclose(means["mean"], scores.means()["mean"])
    axes = scores.plot(role=ROLES[0])
    drawn = axes.collections[0].get_array()
    assert np.allclose(drawn, np.mean(scores.values[..., 0], axis=0))
    assert scores.plot().get_title()
    with pytest.raises(UsageError, match="figure of the scores called"):
        scores.plot("curves")
    with pytest.raises(UsageError, match="as they were not tested"):
        scores.where(layer=0)
    assert scores.where(ROLES[1]).role_ids == (ROLES[1],)


def test_scores_that_are_in_a_folder_alone_say_the_same_of_their_run(tmp_path: Path) -> None:
    """Commands write windows as they come, and hold no example when they print the run."""
    scores = make_scores()
    alone = HeadScores.without_examples((2, 3), scores.roles, scores.score, scores.record)
    assert alone.record == scores.record
    assert alone.to_json() == scores.to_json()
    assert not list(alone.details())


def rewrite(folder: Path, name: str, table: pa.Table) -> None:
    """Replace a table as if it had been written so."""
    pq.write_table(table, folder / name)
    run = read_run(folder)
    held = {**run.files["scores"], **digests_of(folder, [name])}
    write_run(folder, run.content, {"scores": held})


class TestFilesThatDoNotBelongTogether:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make_scores().save(tmp_path / "out")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(("layers", n) for n in (1, 3, -1)),
            *(("heads", n) for n in (2, 4, "3")),
            *(("roles", one) for one in ([{"id": "local"}], ["local"], [{"name": "local"}], None)),
            ("score", "odds"),
            ("scores", 5),
            *((key, ...) for key in ("layers", "heads", "roles", "score", "scores")),
        ],
        ids=str,
    )
    def test_run_file_of_another_run(self, folder: Path, name: str, value: Any) -> None:
        """As if it had been written so; ``...`` stands for an entry that is missing."""
        run = read_run(folder)
        part = run.content["scores"]["model" if name in ("layers", "heads") else "facts"]
        part[name] = value
        if value is ...:
            del part[name]
        write_run(folder, run.content, run.files)
        with pytest.raises(StorageError, match=r"run\.json.*again"):
            HeadScores.load(folder)

    @pytest.mark.parametrize("name", [SCORES_FILE, EXAMPLES_FILE])
    def test_a_file_of_another_run_or_with_a_flipped_bit(
        self, folder: Path, tmp_path: Path, name: str
    ) -> None:
        other = make_scores(make_block(0, 6)).save(tmp_path / "other")
        flipped = bytearray((folder / name).read_bytes())
        flipped[len(flipped) // 2] ^= 1
        for content in ((other / name).read_bytes(), flipped):
            (folder / name).write_bytes(content)
            with pytest.raises(StorageError, match=f"{name} was changed after headroles wrote it"):
                HeadScores.load(folder)

    @pytest.mark.parametrize("column", ["example", "layer", "head", "role", "score", "count"])
    def test_scores_without_a_column(self, folder: Path, column: str) -> None:
        """Another version may write other columns."""
        table = pq.read_table(folder / SCORES_FILE)
        rewrite(folder, SCORES_FILE, table.drop_columns([column]))
        with pytest.raises(StorageError, match=column):
            HeadScores.load(folder)

    def test_numbers_that_are_too_large(self, folder: Path) -> None:
        table = pq.read_table(folder / EXAMPLES_FILE)
        tokens = pa.array([2**64 - 1] * len(table), pa.uint64())
        place = table.column_names.index("tokens")
        rewrite(folder, EXAMPLES_FILE, table.set_column(place, "tokens", tokens))
        with pytest.raises(StorageError, match=r"does not match run\.json"):
            HeadScores.load(folder)

    @pytest.mark.parametrize("column", ["example", "document", "digest"])
    @pytest.mark.parametrize("value", [["a"], 1, {"a": 1}])
    def test_names_that_are_no_texts(self, folder: Path, column: str, value: Any) -> None:
        table = pq.read_table(folder / EXAMPLES_FILE)
        place = table.column_names.index(column)
        values = pa.array([value] * len(table))
        rewrite(folder, EXAMPLES_FILE, table.set_column(place, column, values))
        with pytest.raises(StorageError, match=f"{column}s of examples of type .* are no texts"):
            HeadScores.load(folder)

    @pytest.mark.parametrize("number", [2.5, np.nan, np.inf, None])
    @pytest.mark.parametrize(
        ("name", "column"),
        [(SCORES_FILE, "count"), (SCORES_FILE, "layer"), (EXAMPLES_FILE, "tokens")],
    )
    def test_counts_that_are_no_whole_numbers(
        self, folder: Path, name: str, column: str, number: float | None
    ) -> None:
        table = pq.read_table(folder / name)
        numbers = [number, *table.column(column).to_pylist()[1:]]
        place = table.column_names.index(column)
        kind = pa.int32() if number is None else pa.float64()
        rewrite(folder, name, table.set_column(place, column, pa.array(numbers, kind)))
        with pytest.raises(StorageError, match=r"does not match run\.json"):
            HeadScores.load(folder)

    @pytest.mark.parametrize("name", [RUN_FILE, SCORES_FILE, EXAMPLES_FILE])
    def test_missing_file_is_named(self, folder: Path, name: str) -> None:
        (folder / name).unlink()
        with pytest.raises(StorageError, match=f"there is no {name} in {folder}"):
            HeadScores.load(folder)


def test_parts_are_joined() -> None:
    whole = make_scores()
    parts = [whole.select(np.arange(3)), whole.select(np.arange(3, 5))]
    assert_equal(HeadScores.joined(parts, Record()), whole)
    without = replace(whole, digests=(), bounds=None)
    assert HeadScores.joined([whole, without], Record()).digests == ()
    assert HeadScores.joined([whole, without], Record()).bounds is None


@pytest.mark.parametrize(
    ("shape", "documents", "reason"),
    [
        ((5, 2, 2), None, r"must be \(examples, layers, heads, 1\)"),
        ((5, 1, 2, 2), None, r"must be \(examples, layers, heads, 1\)"),
        ((5, 1, 2, 1), ["one"], "1 documents for 5 examples"),
    ],
)
def test_numbers_by_hand_of_another_shape(
    shape: tuple[int, ...], documents: list[str] | None, reason: str
) -> None:
    with pytest.raises(UsageError, match=reason):
        HeadScores.by_hand(np.ones(shape), ["local"], documents)


def counted(*counts: int) -> dict[str, Any]:
    """Counts in the order of `PieceCounts`; the last may be missing."""
    return {"pieces": dict(zip(PieceCounts.__struct_fields__, counts, strict=False))}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, ""),
        (counted(100, 10, 50, 5), ""),
        (
            counted(100, 11, 50, 5),
            "does not know 11% of all pieces, and no piece of 10% of the words: these",
        ),
        (counted(100, 0, 50, 6), "no piece of 12% of the words: these results mean little"),
        (counted(3, 3, 3, 3), "no piece of 100% of"),
        (counted(180, 0, 100, 0), ""),
        (
            counted(181, 0, 100, 0),
            "into 1.8 pieces on average: .* Score a model for the language and script",
        ),
        (counted(181, 0, 99, 0), ""),
        (counted(100, 75, 100, 0), "does not know 75% of all pieces"),
        (counted(9, 0, 10, 1, 1), ""),
        (counted(12, 0, 16, 4, 4), "makes no piece of 25% of the words"),
        (counted(12, 2, 16, 8, 1), "no piece of 44% of the words"),
        ({"skipped": {TOO_LONG: 1}, "examples": 9}, ""),
        (
            {"skipped": {TOO_LONG: 24}, "examples": 11},
            "24 of 35 examples are too long .* `pairing=.none'`",
        ),
        (
            {"skipped": {TOO_LONG: 24}, "examples": 11, "options": {"pairing": "none"}},
            "24 of 35 examples are too long for the model and were skipped",
        ),
    ],
)
def test_warnings_of_a_run(said: dict[str, Any], message: str) -> None:
    warnings = warnings_of_run(Record.read({"options": said.pop("options", {}), "corpus": said}))
    assert len(warnings) == bool(message)
    assert re.search(message, "".join(warnings))


def test_a_run_counts_what_the_tokenizer_does_not_know(tmp_path: Path) -> None:
    odd = [("猫", 2, "nsubj"), ("寝る", 0, "root"), (".", 2, "punct")]
    (tmp_path / "a.conllu").write_text(conllu_sentence(odd) + conllu_sentence(CAT))
    (tmp_path / "README").write_text("x")
    model = make_bert()
    scores = score_heads(model, read_conllu(tmp_path), tokenizer=make_tokenizer())
    # 猫, 寝 and る are cut apart; Cats and sleep are spelled out
    pieces = counted(3 + 1 + 4 + 5 + 1, 3, 6, 2)["pieces"]
    assert scores.record.corpus.pieces == PieceCounts(**pieces)
    shown = describe_run(scores.record)
    assert (
        "pieces  14 from 6 words, 14 an example; unknown: 21.4% of the pieces, 33.3% of the words"
        in shown
    )
    assert f"{tmp_path}: 1 files read, 1 ignored: README" in shown
    (warned,) = [one.text for one in scores.summarize() if isinstance(one, Warned)]
    assert "no piece of 33% of the words" in warned


def test_sentences_without_pieces_are_reported(tmp_path: Path) -> None:
    """The zero-width space alone is no example; beside a sentence it is no second one."""
    nothing = [("\u200b", 0, "root")]
    texts = [conllu_sentence(words, newdoc=name) for name, words in (("a", nothing), ("b", CAT))]
    texts += [conllu_sentence(nothing), conllu_sentence(nothing, newdoc="c"), conllu_sentence(CAT)]
    file = tmp_path / "a.conllu"
    file.write_text("".join(texts))
    for score in ("bias", "excess", "hit"):
        asked = {"tokenizer": make_tokenizer(), "score": score}
        scores = score_heads(make_bert(), read_conllu(file), **asked)
        assert scores.ids == ("a-2+a-3", "a-4+a-5")
        assert scores.record.corpus.skipped == {NO_PIECES: 1}
        assert not np.isnan([scores.column(role) for role in ("delimiter", "local")]).any()
        block = "block:ratio" if score == "bias" else "block"
        assert np.isnan(scores.column(block)).all()
    message = describe_run(scores.record)
    assert "unknown: 0.0% of the pieces, 0.0% of the words; without a piece: 25.0% of" in message
    assert "skipped examples without word pieces: 1" in message
    (warned,) = [one.text for one in scores.summarize() if isinstance(one, Warned)]
    assert warned.startswith("the tokenizer makes no piece of 25% of the words")


def test_pairs_that_are_all_too_long(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text(conllu_sentence(CAT) + conllu_sentence(DOG))
    given = (make_bert(max_position_embeddings=20), read_conllu(file))
    asked = {"tokenizer": make_tokenizer()}
    with pytest.raises(CorpusError, match=r"no example could be scored: 1 .* \(.*pairing='none'\)"):
        score_heads(*given, **asked)
    scores = score_heads(*given, **asked, pairing="none", relations="none")
    assert scores.n_examples == 2
    assert not any(role.startswith("syntactic") for role in scores.role_ids)


def test_first_choices_that_were_saved_without_class_rules_load(
    bert_folder: Path, sample: Path, tmp_path: Path
) -> None:
    scores = score_heads(bert_folder, read_conllu(sample), score="hit", roles="syntactic")
    assert scores.class_hits is not None
    rules = scores.class_rules("syntactic:obj/content:to_governor").rules
    assert str(rules[0]) == "nearest verb to the left"
    loaded = HeadScores.load(scores.save(tmp_path / "new"))
    assert loaded == scores
    assert loaded.class_hits is not None
    assert loaded.class_hits.dtype == np.uint16
    some = loaded.select(np.array([3, 1]), ["syntactic:obj/content:to_governor"])
    place = scores.role_ids.index("syntactic:obj/content:to_governor")
    np.testing.assert_array_equal(some.class_hits, scores.class_hits[[3, 1]][:, [place]])
    facts = {name: fact for name, fact in scores.record.facts.items() if name != "class_rules"}
    record = structs.replace(scores.record, facts=facts)
    old = replace(scores, class_hits=None, record=record).save(tmp_path / "old")
    assert "class_hits" not in pq.read_schema(old / "examples.parquet").names
    read = HeadScores.load(old)
    assert read.class_hits is None
    assert read.class_rules("syntactic:obj/content:to_governor").rules == []
    np.testing.assert_array_equal(read.values, scores.values)
