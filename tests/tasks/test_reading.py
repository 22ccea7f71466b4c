"""Labelled text from files: GLUE's files, and files that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from headroles.errors import CorpusError, UsageError
from headroles.tasks.options import TaskOptions
from headroles.tasks.reading import read_task

FILES = {
    "SST-2": ("sentence\tlabel\ngood film \t1\nbad film \t0\n", {}, ("good film",), "1"),
    "RTE": (
        "index\tsentence1\tsentence2\tlabel\n0\ta b\tc\tentailment\n1\td\te\tnot_entailment\n",
        {},
        ("a b", "c"),
        "entailment",
    ),
    "MRPC": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone "x"\ttwo\n0\t9\t1\ta\tb\n',
        {},
        ('one "x"', "two"),
        "1",
    ),
    "CoLA": (
        "gj04\t1\t\tThey left.\ngj04\t0\t*\tThey leaved.\n",
        {"text_columns": "3", "label_column": "1", "header": False},
        ("They left.",),
        "1",
    ),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "task.tsv"


@pytest.mark.parametrize("name", FILES)
def test_glue_as_it_is(name: str, file: Path) -> None:
    content, options, texts, label = FILES[name]
    file.write_text(content, encoding="utf-8")
    task = read_task(file, TaskOptions(**options))
    assert len(task) == 2
    assert (task.texts[0], task.labels[0]) == (texts, label)
    assert task.lines == ((1, 2) if name == "CoLA" else (2, 3))


def test_plain_text_is_a_text_a_line(file: Path) -> None:
    file.write_text("One  text.\n\nAnother.\n")
    task = read_task(file, TaskOptions(), labelled=False)
    assert task.texts == (("One text.",), ("Another.",))
    assert (task.lines, task.labels) == ((1, 3), ())


def test_some_examples_are_the_same_every_time(file: Path) -> None:
    file.write_text("text\tlabel\n" + "".join(f"t{k}\t{k % 2}\n" for k in range(50)))
    first, second = (read_task(file, TaskOptions(examples=7)) for _ in range(2))
    assert first == second
    assert len(first) == 7
    assert list(first.lines) == sorted(first.lines)
    assert len(read_task(file, TaskOptions(examples=99))) == 50


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a\tb\n1\t2\n3\t4\n",
            {},
            r"no columns of .* are known to hold the text; .* text_columns \(it has: a, b",
        ),
        ("text\tb\n1\t2\n", {}, "are known to hold the label; name them with label_column"),
        ("text\tlabel\nx\t1\ny\n", {}, r"line 3: 1 columns instead of 2"),
        ("text\tlabel\nx\t1\n", {}, "holds 1 examples; two are the least"),
        (
            "text\tlabel\nx\t1\n",
            {"text_columns": "body"},
            "no column 'body'; it has: text, label",
        ),
        ("x\t1\ny\t2\n", {"text_columns": "7", "label_column": 1, "header": False}, "no column 7"),
        (
            "text\ttext\tlabel\nx\ty\t1\n",
            {},
            "has 2 columns 'text', numbers 0, 1; give the number of the one you mean",
        ),
        ("text\tlabel\tb\tlabel\nx\t1\ty\t2\n", {}, "2 columns 'label', numbers 1, 3"),
        ("x\t1\n", {"text_columns": "t", "label_column": 1, "header": False}, "to have no header"),
        (
            "text\tlabel\nx\t1\n",
            {"text_columns": "a,b,c"},
            "3 text columns were given",
        ),
    ],
)
def test_what_cannot_be_read(
    content: str, options: dict[str, object], message: str, file: Path
) -> None:
    file.write_text(content)
    with pytest.raises((CorpusError, UsageError), match=message):
        read_task(file, TaskOptions(**options))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no file"):
        read_task(tmp_path / "none.tsv", TaskOptions())
