"""Description of a run, and warnings to read before relying on its scores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headroles.encoding import TOO_LONG
from headroles.models.options import ENCODER
from headroles.record import PieceCounts, Record
from headroles.scoring.options import HALF
from headroles.wording import listed, numbered

MUCH = 0.1
"""Share of unknown or skipped text beyond which a warning is given."""


_MANY_PIECES, _FEWEST_WORDS = 1.8, 100
"""Word pieces per word beyond which a warning is given, from so many words on."""


def warnings_of_run(record: Record) -> list[str]:
    """List warnings of a run; empty for scores made by hand."""
    warnings = [*about_fit(record), *record.model.warnings, *_too_long(record)]
    if part := record.facts.get("part"):
        warnings.append(
            f"this is part {part['number']} of {part['of']} of the corpus; headroles merge joins "
            "all of them"
        )
    if record.model.dtype in ("bfloat16", "float16"):
        warnings.append(
            f"the model ran in {record.model.dtype}: answers near a limit may differ from those of "
            "float32"
        )
    return warnings


def about_fit(record: Record) -> Iterator[str]:
    """Warn of a corpus that does not fit the model or the parser, so that results mean little."""
    yield from _of_pieces(record)
    yield from _of_language(record)
    yield from _of_targets(record)


def _of_language(record: Record) -> Iterator[str]:
    """Warn of text that is not of its parser's language, or of a parser for another model."""
    corpus, languages = record.corpus, record.model.languages
    language, share = corpus.language or _of_treebank(corpus.files), corpus.frequent_share
    if share is not None and share < MUCH and corpus.words >= _FEWEST_WORDS:
        yield (
            f"only {share:.0%} of the words are frequent in the parser's language "
            f"({corpus.language}): its trees may be wrong. If the text is in another language, "
            "name a pipeline for that language with `parser`."
        )
    elif language and languages and language not in languages:
        yield (
            f"the corpus is in the language {language}, and the model reads "
            f"{listed(languages, 8)}, by its card. Score a model for {language}."
        )


def _of_targets(record: Record) -> Iterator[str]:
    """Warn of targets that were cut by the tokenizer of sources, though models of the kind differ.

    Marian has a tokenizer for each language: ``MarianTokenizer`` has both, others only one.
    """
    model = record.model
    reads_targets = model.attention != ENCODER and not model.target_tokenizer
    if reads_targets and model.model_type == "marian" and "Marian" not in model.tokenizer_class:
        yield (
            f"targets were cut into pieces by the tokenizer of the sources ({model.tokenizer_class}"
            "), and models of this type have another one for targets: name it with "
            "`target_tokenizer`, or heads look worse than they are"
        )


def _of_treebank(files: list[str]) -> str:
    """Return the language that the names of all files of Universal Dependencies begin with."""
    languages = {
        match[1] if (match := re.match(r"([a-z]{2,3})_[a-z]+-ud-", Path(file).name)) else ""
        for file in files
    }
    return languages.pop() if len(languages) == 1 else ""


def _of_pieces(record: Record) -> Iterator[str]:
    """Warn of a tokenizer that does not know the text, cuts words into pieces, or loses words."""
    counts = record.corpus.pieces or PieceCounts(0, 0, 0, 0)
    pieces, words = counts.unknown_shares
    if max(pieces, words) > MUCH:
        yield (
            f"the tokenizer does not know {pieces:.0%} of all pieces, and no piece of {words:.0%} "
            "of the words: these results mean little. Check that it belongs to the model and fits "
            "the language, script and case of the corpus."
        )
    if counts.per_word > _MANY_PIECES and counts.words >= _FEWEST_WORDS:
        yield (
            f"a word is cut into {counts.per_word:.1f} pieces on average: these results say little "
            "about syntax. They are about fragments, as of German words under an English model. "
            "Score a model for the language and script of the corpus."
        )
    if counts.lone_spaces > MUCH * counts.pieces:
        yield (
            f"{counts.lone_spaces / counts.pieces:.0%} of all pieces are a space alone, as words "
            "were cut with a space before each. If the text has none there, as in Chinese, "
            "Japanese and Thai, give a corpus that says so, and `spacing='text'`."
        )
    if counts.pieceless_share > MUCH:
        yield (
            f"the tokenizer makes no piece of {counts.pieceless_share:.0%} of the words, which are "
            "not scored. Such words are zero-width spaces and control characters. Check how the "
            "corpus was split into words."
        )


def _too_long(record: Record) -> Iterator[str]:
    skipped = record.corpus.skipped.get(TOO_LONG, 0)
    n_examples = skipped + record.corpus.examples
    if skipped > MUCH * n_examples:
        yield (
            f"{skipped} of {n_examples} examples are too long for the model and were skipped. "
            f"The scored examples are shorter than the corpus{advice_on_length(record)}."
        )


def advice_on_length(record: Record) -> str:
    """Return advice for examples that are too long, as the end of a sentence."""
    if record.options.get("pairing") == "none":
        return ""
    return " (single sentences are shorter than pairs: `pairing='none'`)"


def describe_run(record: Record) -> str:
    """Describe the model, the corpus, and the scored and skipped examples of a run."""
    model, corpus = record.model, record.corpus
    if record.is_by_hand:
        return "scores made by hand\n"
    lines = [f"model   {model.model} ({model.family}, {model.layout})"]
    if model.sight:
        lines.append(f"        {model.sight}")
    lines.append(f"corpus  {listed(corpus.files) or 'sentences in memory'}")
    for folder in corpus.folders:
        left = f", {folder.n_left} ignored: {listed(folder.left, 8)}" if folder.n_left else ""
        lines.append(f"        {folder.folder}: {folder.taken} files read{left}")
    lines.append(
        f"        {numbered(corpus.sentences, 'sentence')}, "
        f"{numbered(corpus.documents, 'document')}, "
        f"{numbered(corpus.examples, 'example')} scored ({corpus.scheme} relations)"
    )
    if n_multiword := corpus.multiword_tokens:
        lines.append(
            f'        {n_multiword} contractions were split as in the treebank (German "im" = '
            '"in dem")'
        )
    is_paired = corpus.examples < corpus.sentences and corpus.format != "bitext"
    if is_paired and record.options.get("pairing") != "none":
        lines.append(
            "        examples are pairs of adjacent sentences (single ones: `pairing='none'`)"
        )
    if absent := record.facts.get("absent_relations"):
        lines.append(f"        no arcs of the default relations {', '.join(absent)}")
    if counts := corpus.pieces:
        (pieces, words), without = counts.unknown_shares, counts.pieceless_share
        lines.append(
            f"pieces  {counts.pieces} from {counts.words} words"
            + (f", {corpus.mean_length:.0f} an example" if corpus.mean_length > 0 else "")
            + f"; unknown: {pieces:.1%} of the pieces, {words:.1%} of the words"
            + (f"; without a piece: {without:.1%} of the words" if without > 0 else "")
        )
    if record.options.get("precision") == HALF:
        lines.append(f"scores  rounded to {HALF}, each by at most one part in 2,048")
    skipped = ", ".join(f"{reason}: {count}" for reason, count in corpus.skipped.items())
    return "\n".join([*lines, f"skipped {skipped or 'nothing'}\n"])
