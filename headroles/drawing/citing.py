"""A paragraph for a paper: the methods, versions and works to cite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headroles.drawing.page import Section
from headroles.record import CorpusRecord, Record, RecordedModel, SetsRecord, TaskRecord
from headroles.wording import listed, printable

if TYPE_CHECKING:
    from headroles.results.result import Result

_WORKS = {
    "headroles": """@software{{headroles,
  title = {{headroles: roles of attention heads, tested}},
  author = {{{{the headroles developers}}}},
  version = {{{version}}},
  year = {{2026}}
}}""",
    "pande": """@inproceedings{pande2021heads,
  title = {The Heads Hypothesis: A Unifying Statistical Approach Towards Understanding
           Multi-Headed Attention in {BERT}},
  author = {Pande, Madhura and Budhraja, Aakriti and Nema, Preksha and Kumar, Pratyush and
            Khapra, Mitesh M.},
  booktitle = {AAAI},
  year = {2021},
  note = {arXiv 2101.09115}
}""",
    "clark": """@inproceedings{clark2019what,
  title = {What Does {BERT} Look At? An Analysis of {BERT}'s Attention},
  author = {Clark, Kevin and Khandelwal, Urvashi and Levy, Omer and Manning, Christopher D.},
  booktitle = {BlackboxNLP},
  year = {2019}
}""",
    "michel": """@inproceedings{michel2019sixteen,
  title = {Are Sixteen Heads Really Better than One?},
  author = {Michel, Paul and Levy, Omer and Neubig, Graham},
  booktitle = {NeurIPS},
  year = {2019}
}""",
}


def how_to_report(result: Result) -> Section:
    """Return the section with a paragraph to copy, and BibTeX entries."""
    record = result.record
    sentences, works = result.method()
    paragraph = " ".join((_setting(record), *sentences))
    own = _WORKS["headroles"].format(version=record.versions.get("headroles", ""))
    return Section(
        "How to report this",
        texts=("To copy into a paper: the model, data, versions and tests of these results.",),
        copied=(paragraph, "\n".join((own, *(_WORKS[one] for one in works)))),
    )


def _setting(record: Record) -> str:
    """Name the program, the model and the data."""
    versions = record.versions
    named = ("transformers", "torch", "python")
    with_versions = ", ".join(f"{one} {versions[one]}" for one in named if one in versions)
    models = list(map(_model, record.models.values())) or [_model(RecordedModel())]
    return (
        f"With headroles {versions.get('headroles', '')} ({with_versions}) we analysed the "
        f"attention heads of {' and '.join(dict.fromkeys(models))}{_data(record)}."
    )


def _model(model: RecordedModel) -> str:
    parts = [model.family, f"revision {model.revision}" if model.revision else ""]
    parts.append(f"weights SHA-256 {model.weights_sha256[:12]}" if model.weights_sha256 else "")
    known = ", ".join(filter(None, parts))
    return printable(model.name) + (f" ({known})" if known else "")


def _data(record: Record) -> str:
    first = next(iter(record.sets.values())) if isinstance(record, SetsRecord) else record
    first = next(iter(first.sources.values()), first)
    if isinstance(first, TaskRecord):
        return f" on {printable(Path(first.corpus.file).name)}"
    if not isinstance(first, CorpusRecord) or first.is_by_hand:
        return ""
    corpus = first.corpus
    files = listed([Path(name).name for name in corpus.files]) or "a corpus in memory"
    return (
        f" on {corpus.sentences} sentences of {files} ({corpus.documents} documents, "
        f"SHA-256 {corpus.digest[:12]})"
    )
