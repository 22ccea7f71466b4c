"""Damaged statements of spaces between words: MISC, # text, multiword tokens, JSON lines."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from benchmarks.fuzz import ODD, Attempt, Surface, make_tokenizer, spoil_cells, spoil_json
from benchmarks.fuzz.corpora import CELLS, row
from headroles.corpus import Corpus, Sentence, make_examples, prepared, read_arcs, read_conllu
from headroles.encoding import SPECIAL, ExampleEncoder
from headroles.models.loading.tokenizers import fit_to_words

NO = "SpaceAfter=No"
ROWS = [
    ("# text = Don't go im Haus, Hündin!", ""),
    (row("1-2", "Don't"), "_"),
    (row("1", "Do", "3", "aux"), "_"),
    (row("2", "n't", "3", "advmod"), "_"),
    (row("3", "go", "0", "root"), "_"),
    (row("4-5", "im"), "_"),
    (row("4", "in", "6", "case"), "_"),
    (row("5", "dem", "6", "det"), "_"),
    (row("6", "Haus", "3", "obl"), NO),
    (row("7", ",", "8", "punct"), "_"),
    (row("8", "Hündin", "3", "vocative"), f"Lang=de|{NO}"),
    (row("9", "!", "3", "punct"), "_"),
]
GOOD = "\n".join(text.removesuffix("_") + misc for text, misc in ROWS).encode() + b"\n\n"
TOLD = (
    *(NO, f"{NO}|x=1", f"|{NO}|", "SpaceAfter=", "SpaceAfter=no", "SpacesAfter=\\s", NO * 50),
    *(
        "1-9",
        "2-3",
        "1-2",
        "3-4",
        "im",
        "Don't",
        "sinh viên",
        "26\u00a0000",
        "犬",
        "▁",
        "Ġ",
        "</s>",
    ),
)
TEXTS = tuple(
    f"# text = {text}"
    for text in ("", "x", "Don't go im Haus, Hündin!", "Don ' t go", "▁", "\u200b" * 99, " " * 50)
)
LINE = {"id": "a", "tokens": ["M", "K", " T"], "arcs": [[0, 2, "c"]], "spaces": [True, False, True]}


@cache
def tokenizers() -> list[PreTrainedTokenizerFast]:
    """Make tokenizers that see spaces, in both ways, and one that does not."""
    made = [make_tokenizer()]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = ["▁", *"DonthgimHausüdr,!'", "▁go", "▁im"]
    for step, pieces in (
        (pre_tokenizers.ByteLevel(add_prefix_space=False), alphabet),
        (pre_tokenizers.Metaspace(), letters),
    ):
        scored = [(piece, -float(k)) for k, piece in enumerate(["<unk>", "</s>", *pieces])]
        backend = Tokenizer(models.Unigram(scored, 0))
        backend.pre_tokenizer = step
        backend.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
        )
        made.append(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>"))
    return [fit_to_words(tokenizer) for tokenizer in made]


def try_treebank(file: Path, chance: random.Random) -> str:
    """Encode a treebank with up to four changes of cells and lines that tell spaces."""
    content = GOOD * chance.randrange(1, 3)
    for _ in range(chance.randrange(5)):
        content = spoil_cells(content, chance, chance.choice((TOLD, TOLD, CELLS)), TEXTS)
    file.write_bytes(content)
    reading = {
        "on_bad_sentence": "skip",
        "ids": "place",
        "contractions": chance.choice(("words", "surface")),
    }
    spacing = chance.choice(("text", "text", "words"))
    joint = chance.choice((None, "_", *filter(None, TOLD), ""))
    return encode(read_conllu(file, **reading, spacing=spacing, join_spaces=joint))


def try_lines(file: Path, chance: random.Random) -> str:
    """Encode a file of tokens and arcs with up to three changes, most of them of spaces."""
    line = dict(LINE)
    if chance.random() < 0.5:
        line["spaces"] = chance.choice((*ODD, [True] * 2, [1, 0, 1], [None] * 3, "true"))
    for _ in range(chance.randrange(3)):
        line = spoil_json(line, chance)
    file.write_text(json.dumps(line, default=str) + "\n", encoding="utf-8", errors="replace")
    return encode(read_arcs(file))


def encode(corpus: Corpus) -> str:
    """Encode a corpus by all tokenizers. Raises AssertionError for pieces that fit no words."""
    with prepared(corpus) as ready:
        examples = list(make_examples(ready, "adjacent"))
    for tokenizer in tokenizers():
        encoder = ExampleEncoder(tokenizer, 10**6, False)
        for example in encoder.encode(examples, Counter()):
            words = example.words[example.segments != SPECIAL]
            if sorted(words) != list(words) or example.sizes.sum() != len(words):
                raise AssertionError(f"pieces of {example.id} fit no words")
    wordpiece = [ExampleEncoder(tokenizers()[0], 10**6, False) for _ in range(2)]
    plain = [type(example)(tuple(map(unspaced, example.sentences))) for example in examples]
    found = [
        [one.digest for one in encoder.encode(some, Counter())]
        for encoder, some in zip(wordpiece, (examples, plain), strict=True)
    ]
    if found[0] != found[1]:
        raise AssertionError("WordPiece sees spaces")
    return "encoded"


def unspaced(sentence: Sentence) -> Sentence:
    """Return a sentence whose spaces are not known."""
    return Sentence(
        sentence.id,
        sentence.document,
        sentence.position,
        sentence.words,
        sentence.governors,
        sentence.relations,
    )


def _spacing(place: Path) -> Attempt:
    def attempt(chance: random.Random) -> str:
        if chance.random() < 0.3:
            return try_lines(place / "a.jsonl", chance)
        return try_treebank(place / "t.conllu", chance)

    return attempt


SURFACES = {"spacing": Surface(1_000, _spacing)}
