"""Arcs of enhanced dependencies and of MISC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headroles import read_conllu, score_heads
from headroles.corpus import ROOT, Sentence
from headroles.errors import CorpusError, UsageError
from headroles.roles import RoleOptions
from headroles.roles.syntactic import arcs_of

# She reads and writes it: she has two governors
LINES = """\
1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t2:nsubj|4:nsubj\t_
2\treads\tread\tVERB\t_\t_\t0\troot\t0:root\t_
3\tand\tand\tCCONJ\t_\t_\t4\tcc\t4:cc|4.1:cc\t_
4\twrites\twrite\tVERB\t_\t_\t2\tconj\t2:conj:and\t_
4.1\tnow\tnow\tADV\t_\t_\t_\t_\t4:advmod\t_
5\tit\tit\tPRON\t_\t_\t2\tobj\t2:obj|4:obj\tCoref=1:same|Other=x
"""


def sentence_of(column: str, texts: tuple[str, ...]) -> Sentence:
    return Sentence("s", "d", 0, ("a", "b", "c"), (ROOT, 0, 0), ("x",) * 3, {column: texts})


@pytest.mark.parametrize(
    ("source", "column", "texts", "arcs"),
    [
        (
            "enhanced",
            "deps",
            ("0:root", "1:obj|3:nsubj:xsubj", "2.1:x"),
            [(1, 0, "obj"), (1, 2, "nsubj:xsubj")],
        ),
        (
            "misc:Coref",
            "misc",
            ("_", "Coref=1,3:far|SpaceAfter=No", "Coref=1"),
            [(1, 0, "Coref"), (1, 2, "far"), (2, 0, "Coref")],
        ),
    ],
)
def test_arcs_of_columns(
    source: str, column: str, texts: tuple[str, ...], arcs: list[tuple[int, int, str]]
) -> None:
    assert arcs_of(source, sentence_of(column, texts)) == arcs


MANY_DIGITS = "9" * 5000  # Python turns no more than 4,300 into a number


@pytest.mark.parametrize(
    ("source", "column", "text"),
    [
        *(("misc:Coref", "misc", f"Coref={end}") for end in ("4", "x", "0", "2", MANY_DIGITS)),
        ("enhanced", "deps", f"{MANY_DIGITS}:nsubj"),
    ],
)
def test_what_is_no_arc(source: str, column: str, text: str) -> None:
    message = rf"sentence 's', word 2: .* \({source}\) is not an arc; write"
    with pytest.raises(CorpusError, match=message) as caught:
        arcs_of(source, sentence_of(column, ("_", text, "_")))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("source", ["tree", "misc:", "misc"])
def test_sources_that_there_are_not(source: str) -> None:
    with pytest.raises(UsageError, match="pass basic, enhanced or misc:KEY"):
        RoleOptions(arcs=source)


class TestScores:
    def scores(self, tmp_path: Path, bert_folder: Path, lines: str = LINES, **options: Any) -> Any:
        file = tmp_path / "deps.conllu"
        file.write_text(lines + "\n")
        return score_heads(
            bert_folder, read_conllu(file), roles="syntactic", controls="none", **options
        )

    def test_several_governors(self, tmp_path: Path, bert_folder: Path) -> None:
        basic = self.scores(tmp_path, bert_folder, beyond_offset=False)
        enhanced = self.scores(tmp_path, bert_folder, arcs="enhanced")
        assert basic.role_ids == enhanced.role_ids
        assert basic.counts[0].tolist() == [2, 2, 1, 1, 1, 1]
        assert enhanced.counts[0].tolist() == [4, 4, 2, 2, 2, 2]
        assert enhanced.roles[0].meaning["arcs"] == "enhanced"

    def test_labels_of_misc(self, tmp_path: Path, bert_folder: Path) -> None:
        scores = self.scores(tmp_path, bert_folder, arcs="misc:Coref")
        assert "syntactic:same:to_governor" in scores.role_ids
        assert scores.counts[0].tolist() == [1] * 4

    def test_a_column_that_the_corpus_does_not_have(
        self, tmp_path: Path, bert_folder: Path
    ) -> None:
        bare = "1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n"
        for source, column in (("enhanced", "DEPS"), ("misc:Coref", "MISC")):
            with pytest.raises(CorpusError, match=f"no sentence .* in its column {column}"):
                self.scores(tmp_path, bert_folder, bare, arcs=source)
