"""What to know of a run before relying on its scores: what was read, and what it became."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headroles.encoding import TOO_LONG
from headroles.results import Shown, Summary, Warned
from headroles.roles import BIAS
from headroles.wording import listed

MUCH = 0.1
"""Share of a corpus beyond which it is told that so much is unknown, or was left out."""


_MANY_PIECES, _FEWEST_WORDS = 1.8, 100
"""Word pieces a word beyond which it is told, of so many words at least."""
_MEANINGLESS = ("model", "checkpoint", "best", "final", "latest", "last")


def model_name(provenance: dict[str, Any]) -> str:
    """Name the model by the last part of its path, or the last two where that says nothing."""
    name = (provenance.get("model") or {}).get("model")
    if not name:
        return "a model"
    parts = Path(str(name)).parts
    return "/".join(parts[-2:] if parts[-1:] in [(one,) for one in _MEANINGLESS] else parts[-1:])


def describe_folders(corpus: dict[str, Any]) -> Iterator[str]:
    """For each folder of a corpus how many of its files were taken, and what was left."""
    for folder in corpus.get("folders", ()):
        left = ""
        if folder["n_left"]:
            left = f", {folder['n_left']} left: {listed(folder['left'], 8)}"
        yield f"{folder['folder']}: {folder['taken']} files taken{left}"


def describe_pieces(provenance: dict[str, Any]) -> Iterator[str]:
    """How many word pieces there were, and how much of the text the tokenizer does not know."""
    if counts := provenance.get("pieces"):
        pieces, words = unknown_shares(counts)
        without = pieceless_share(counts)
        length = mean_length(provenance)
        yield (
            f"{counts['pieces']} from {counts['words']} words"
            + f", {length:.0f} an example" * (length > 0)
            + f"; unknown: {pieces:.1%} of the pieces, {words:.1%} of the words"
            + f"; without a piece: {without:.1%} of the words" * (without > 0)
        )


def mean_length(provenance: dict[str, Any]) -> float:
    """Mean number of word pieces of an example, special tokens aside; 0 where it is not known."""
    n_pieces = (provenance.get("pieces") or {}).get("pieces", 0)
    return float(n_pieces / max(1, provenance.get("examples", 0)))


def about_length(provenance: dict[str, Any]) -> str:
    """That bias scores grow with the length of examples; nothing of other scores."""
    length = mean_length(provenance)
    if provenance.get("score") != BIAS.name or not length:
        return ""
    return (
        "bias scores are relative to uniform attention, which leaves each token the less the "
        f"longer an example is (here {length:.0f} word pieces on average): they grow with length, "
        "and a threshold asks less of long examples; to compare corpora or lengths, score with "
        "excess (--score excess), whose range is the same for all lengths"
    )


def unknown_shares(counts: dict[str, int]) -> tuple[float, float]:
    """The share of unknown pieces, and of words whose pieces are all unknown."""
    n_unknown = counts["words_without_known_piece"] - counts.get("words_without_pieces", 0)
    return (
        counts["unknown_pieces"] / max(counts["pieces"], 1),
        n_unknown / max(counts["words"], 1),
    )


def pieceless_share(counts: dict[str, int]) -> float:
    """The share of words of which the tokenizer makes no piece."""
    return counts.get("words_without_pieces", 0) / max(counts["words"], 1)


def warnings_of_run(provenance: dict[str, Any]) -> list[str]:
    """Sentences for people; none where nothing is known, as of scores made by hand."""
    of_model = provenance.get("model", {}).get("warnings", [])
    found = (
        *of_model,
        _unknown_pieces(provenance) or _many_pieces(provenance),
        _without_pieces(provenance),
        _too_long(provenance),
        _of_part(provenance),
    )
    return [warning for warning in found if warning]


def _unknown_pieces(provenance: dict[str, Any]) -> str:
    counts = provenance.get("pieces")
    if not counts:
        return ""
    pieces, words = unknown_shares(counts)
    if max(pieces, words) <= MUCH:
        return ""
    return (
        f"the tokenizer does not know {pieces:.0%} of the word pieces, and no piece of {words:.0%} "
        "of the words: what heads do with these says little; check that tokenizer and model "
        "belong together, and know the language of the corpus, its script and its case"
    )


def _many_pieces(provenance: dict[str, Any]) -> str:
    counts = provenance.get("pieces") or {"pieces": 0, "words": 0}
    per_word = counts["pieces"] / max(counts["words"], 1)
    if per_word <= _MANY_PIECES or counts["words"] < _FEWEST_WORDS:
        return ""
    return (
        f"the tokenizer cuts a word into {per_word:.1f} pieces on average: is the corpus in "
        "another language or script than the model reads, such as German text under an English "
        "model? What heads do with fragments of words says little of syntax"
    )


def _without_pieces(provenance: dict[str, Any]) -> str:
    counts = provenance.get("pieces")
    if not counts or pieceless_share(counts) <= MUCH:
        return ""
    return (
        f"the tokenizer makes no piece at all of {pieceless_share(counts):.0%} of the words, as of "
        "zero-width spaces and control characters: nothing is scored of these; check how the "
        "corpus was cut into words"
    )


def _too_long(provenance: dict[str, Any]) -> str:
    left_out = provenance.get("skipped", {}).get(TOO_LONG, 0)
    n_examples = left_out + provenance.get("examples", 0)
    if left_out <= MUCH * n_examples:
        return ""
    return (
        f"{left_out} of {n_examples} examples are longer than the model takes and were left out"
        f"{cure_of_length(provenance)}: the others are the short ones, and no sample of the corpus"
    )


def _of_part(provenance: dict[str, Any]) -> str:
    part = provenance.get("part")
    if not part:
        return ""
    return (
        f"this is part {part['number']} of {part['of']} of the corpus; "
        "headroles merge joins all of them"
    )


def cure_of_length(provenance: dict[str, Any]) -> str:
    """What to do about examples that are too long, to be put into a sentence."""
    if not _in_pairs(provenance):
        return ""
    return " (single sentences are shorter than pairs: --pairing none)"


def _in_pairs(provenance: dict[str, Any]) -> bool:
    return bool(provenance.get("options", {}).get("pairing") != "none")


def describe_run(provenance: dict[str, Any]) -> str:
    """What was scored, and what was skipped and why, for people."""
    model, corpus = provenance.get("model"), provenance.get("corpus")
    if not model or not corpus:
        return "scores made by hand\n"
    lines = [
        f"model   {model['model']} ({model['family']}, {provenance['layers']} layers x "
        f"{provenance['heads']} heads)",
        *_describe_reading(provenance),
        f"corpus  {listed(corpus['files']) or 'sentences in memory'}",
        *(f"        {line}" for line in describe_folders(corpus)),
        f"        {corpus['sentences']} sentences, {corpus['documents']} documents, "
        f"{provenance['examples']} examples scored ({corpus['scheme']} relations)",
    ]
    if n_multiword := corpus.get("multiword_tokens"):
        lines.append(
            f"        {n_multiword} multiword tokens are read as the words that they stand for, as "
            "im is as in dem"
        )
    if provenance["examples"] < corpus["sentences"] and _in_pairs(provenance):
        lines.append("        examples are neighbouring sentences in pairs (--pairing none: alone)")
    if absent := provenance["absent_relations"]:
        lines.append(f"        no arcs of the default relations {', '.join(absent)}")
    skipped = [f"{reason}: {count}" for reason, count in provenance["skipped"].items()]
    lines += [f"pieces  {line}" for line in describe_pieces(provenance)]
    if rounded := provenance.get("rounded"):
        lines.append(f"scores  rounded to {rounded}, each by at most one part in 2,048")
    lines.append(f"skipped {', '.join(skipped) if skipped else 'nothing'}\n")
    return "\n".join(lines)


def _describe_reading(provenance: dict[str, Any]) -> Iterator[str]:
    """Say how attention was read where it was by what the model returns."""
    way = provenance["model"].get("read_through", "")
    if "returned" not in way:
        return
    line = "        read by the attentions that the model returns"
    if "at once" in way:
        mib = provenance["layers"] * provenance["heads"] * 4 * 128**2 / 2**20
        line += f", all layers at once: {mib:.1f} MiB of memory for a text of 128 tokens"
    yield line


def facts_of_run(provenance: dict[str, Any]) -> dict[str, Any]:
    """The same for scripts."""
    kept = ("model", "corpus", "layers", "heads", "examples", "skipped", "pieces", "options")
    return {key: provenance.get(key) for key in kept}


@dataclass(frozen=True)
class RunSummary(Summary):
    """What a run has scored, and what to be careful about."""

    provenance: dict[str, Any]

    def shown(self) -> Iterator[Shown]:
        """Say what was scored, and what to be careful about."""
        yield describe_run(self.provenance)
        yield from map(Warned, warnings_of_run(self.provenance))

    def facts(self) -> dict[str, Any]:
        """Return the same for scripts."""
        return {**facts_of_run(self.provenance), "warnings": warnings_of_run(self.provenance)}
