"""A paragraph for a paper: what was done, with which versions, and the works to cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headroles.record import Record
from headroles.report.page import Section
from headroles.roles import BIAS, EXCESS, HIT
from headroles.testing import TESTS, describe_correction
from headroles.wording import listed, printable

if TYPE_CHECKING:
    from headroles.results import Result

_SCORES = {
    BIAS.name: (
        "The sieve bias score of a head for a role is the attention that it gives to the words of "
        "the role, over what uniform attention would give them (Pande et al., 2021).",
        "pande",
    ),
    EXCESS.name: (
        "The excess score of a head for a role is its attention to the words of the role beyond "
        "uniform attention, over the largest possible excess.",
        "pande",
    ),
    HIT.name: (
        "The score of a head for a role is the share of words whose largest attention goes where "
        "the role looks (Clark et al., 2019).",
        "clark",
    ),
}
_METHODS = {
    "comparison": (
        "We tested for each head and role whether its score changed, by paired tests over the same "
        "examples",
        ("pande",),
    ),
    "importance": (
        "The importance of a head is the expected derivative of the loss by a gate on its output "
        "(Michel et al., 2019)",
        ("michel",),
    ),
    "ablations": (
        "We removed heads and tested whether the loss of the same examples changed",
        ("michel",),
    ),
}
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
    provenance = result.provenance
    sentences, works = _method(result)
    paragraph = " ".join((_setting(provenance), *sentences))
    version = (provenance.get("versions") or {}).get("headroles", "")
    own = _WORKS["headroles"].format(version=version)
    return Section(
        "How to report this",
        texts=("To copy into a paper; the text names what these results were made with.",),
        copied=(paragraph, "\n".join((own, *(_WORKS[one] for one in works)))),
    )


def _setting(provenance: Mapping[str, Any]) -> str:
    """Name the program, the model and the data."""
    versions = provenance.get("versions") or {}
    named = ("transformers", "torch", "python")
    with_versions = ", ".join(f"{one} {versions[one]}" for one in named if one in versions)
    sets = provenance.get("sets") or {}
    models = list(map(_model, sets.values())) if sets else [_model(provenance)]
    return (
        f"With headroles {versions.get('headroles', '')} ({with_versions}) we analysed the "
        f"attention heads of {' and '.join(dict.fromkeys(models))}{_data(provenance)}."
    )


def _model(provenance: Mapping[str, Any]) -> str:
    model = Record.read(provenance).model
    told = [model.family, f"revision {model.revision}" if model.revision else ""]
    told.append(f"weights SHA-256 {model.weights_sha256[:12]}" if model.weights_sha256 else "")
    known = ", ".join(filter(None, told))
    return printable(model.name) + (f" ({known})" if known else "")


def _data(provenance: Mapping[str, Any]) -> str:
    first = next(iter((provenance.get("sets") or {}).values()), provenance)
    corpus = first.get("corpus") or {}
    if "sentences" not in corpus:
        task = (provenance.get("task") or {}).get("file")
        return f" on {printable(Path(str(task)).name)}" if task else ""
    files = listed([Path(name).name for name in corpus.get("files") or ()]) or "a corpus in memory"
    return (
        f" on {corpus['sentences']} sentences of {files} ({corpus.get('documents', 0)} documents, "
        f"SHA-256 {str(corpus.get('digest') or '')[:12]})"
    )


def _method(result: Result) -> tuple[list[str], tuple[str, ...]]:
    """Return sentences about scores and tests, and the works that they rest on."""
    provenance = result.provenance
    tests = provenance.get("tests") or {}
    if result.kind == "role table":
        told, work = _SCORES[provenance["score"]]
        return [told, *_about_roles(tests)], (work,)
    method, works = _METHODS.get(result.kind, ("", ()))
    how = f" ({_tested(tests)})" if "test" in tests else ""
    return [f"{method}{how}."] if method else [], works


def _about_roles(tests: Mapping[str, Any]) -> Iterator[str]:
    yield f"A head has a role if its mean score is above {tests['threshold']:g} ({_tested(tests)})."
    yield (
        "Of roles of arcs we report heads that also score higher on arcs than on other words at "
        "the same distance."
    )


def _tested(tests: Mapping[str, Any]) -> str:
    units = (
        f"examples clustered by {tests['n_clusters']} documents"
        if tests.get("clustered_by", "none") != "none"
        else "independent examples"
    )
    correction = describe_correction(tests["correction"], tests.get("family", "all"))
    return (
        f"{TESTS[tests['test']].words} over {units}, alpha {tests['alpha']:g}, "
        f"{correction.replace('fdr_bh', 'Benjamini-Hochberg')}"
    )
