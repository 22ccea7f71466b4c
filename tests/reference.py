"""The scores straight from their definition: slow, in float64, one example and one loop at a time.

Every test of a score compares with this. Nothing here comes from the package but the sentences:
words are cut into pieces one by one, and attention is what transformers returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headroles.corpus import Example
from headroles.reach import EVERYTHING, Reach
from tests.rounding import SUMS, largest_excess

Attention = NDArray[np.float64]
"""(heads, n, n), or (layers, heads, n, n)."""
SPECIAL = -1


@dataclass(frozen=True)
class Tokens:
    """The tokens of an example: the segment of each, and its word.

    Of words the governors, labels, classes and sentences. Special tokens have segment and word -1.
    Words are numbered through both segments.
    """

    segments: list[int]
    words: list[int]
    governors: list[int]
    relations: list[str]
    classes: list[str]
    sentences: list[int]

    @property
    def n(self) -> int:
        return len(self.segments)

    @property
    def specials(self) -> list[int]:
        return [i for i, segment in enumerate(self.segments) if segment == SPECIAL]

    def pieces(self, word: int) -> list[int]:
        return self._pieces.get(word, [])

    @cached_property
    def _pieces(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, word in enumerate(self.words):
            found.setdefault(word, []).append(i)
        return found

    def arcs(self, relations: Sequence[str]) -> Iterator[tuple[str, list[int], list[int]]]:
        """Relation, pieces of the dependent, pieces of its governor."""
        for word, governor in enumerate(self.governors):
            ends = self.pieces(word), self.pieces(governor)
            for name in self.labels(word):
                if governor >= 0 and name in relations and all(ends):
                    yield name, *ends

    def every_arc(self) -> Iterator[tuple[int, int]]:
        """The dependent and the governor of each arc between words with pieces."""
        for word, governor in enumerate(self.governors):
            if governor >= 0 and self.pieces(word) and self.pieces(governor):
                yield word, governor

    def labels(self, word: int) -> tuple[str, str]:
        """The relation of a word, and the part of it by the class of the word."""
        relation = self.relations[word].split(":")[0]
        return relation, f"{relation}/{'content' if self.is_open(word) else 'function'}"

    def is_open(self, word: int) -> bool:
        """Whether a word is of an open class."""
        return self.classes[word] in ("ADJ", "ADV", "INTJ", "NOUN", "VERB")


@dataclass(frozen=True)
class Asked:
    """What is scored: the kind of score, and how far a query can attend."""

    score: str = "bias"
    reach: Reach = EVERYTHING
    window: int = 2

    def keys(self, query: int, n: int) -> range:
        """The keys that a query can attend to."""
        back, ahead = (n if limit is None else limit for limit in self.reach[:2])
        return range(max(0, query - back), min(n, query + ahead + 1))

    def visible(self, n: int) -> NDArray[np.bool_]:
        """(n, n): the keys that each query can attend to."""
        return np.array([[j in self.keys(i, n) for j in range(n)] for i in range(n)])

    def row(self, attention: Attention, query: int, sieve: Sequence[int]) -> Any:
        """What is read from one row; None if it says nothing."""
        keys = self.keys(query, attention.shape[-1])
        inside = [j for j in sieve if j in keys]
        e = len(inside) / len(keys)
        mass = attention[..., query, inside].sum(-1)
        if self.score == "bias":
            return mass / e if inside else None
        return (mass - e) / (1 - e) if 0 < e < 1 else None

    def scale(self, query: int, n: int, n_inside: int) -> float:
        """By what a row grows with the mass in its sieve."""
        e = n_inside / len(self.keys(query, n))
        return 1 / e if self.score == "bias" else 1 / (1 - e)


def mean(values: Sequence[Any]) -> Any:
    """Mean of what is there; None if nothing is."""
    there = [value for value in values if value is not None]
    return np.mean(there, axis=0) if there else None


def reference_scores(
    attention: Attention, tokens: Tokens, relations: Sequence[str], asked: Asked | None = None
) -> dict[str, Any]:
    """Score of every role, None where the example has none."""
    asked = asked or Asked()
    if asked.score == "hit":
        return _hits(attention, tokens, relations, asked)
    return {
        **_of_tokens(attention, tokens, asked),
        **_block(attention, tokens, asked),
        **_syntactic(attention, tokens, relations, asked),
    }


def reference_positions(
    attention: Attention, tokens: Tokens, offsets: Sequence[int], asked: Asked
) -> dict[str, Any]:
    """Scores of the tokens at fixed offsets; 0 is the token itself."""
    every, inner = range(tokens.n), [i for i in range(tokens.n) if i not in tokens.specials]
    found = {}
    for k in offsets:
        name = f"position:{k:+d}" if k else "self"
        if asked.score != "hit":
            rows = [asked.row(attention, i, [i + k] if i + k in every else []) for i in every]
        else:
            queries = [i for i in inner if i + k in inner and i + k in asked.keys(i, tokens.n)]
            rows = [
                (np.array(inner)[attention[..., i, inner].argmax(-1)] == i + k).astype(float)
                for i in queries
            ]
        found[name] = mean(rows)
    return found


def reference_word_set(
    attention: Attention, tokens: Tokens, sets: Sequence[tuple[list[int], list[int]]], asked: Asked
) -> Any:
    """Score of the words that query words look for; pairs of both, in numbers of words."""
    chosen, values = first_choices(attention, tokens), []
    for queries, wanted in sets:
        wanted = [word for word in wanted if tokens.pieces(word)]
        for word in queries:
            if asked.score == "hit":
                others = [j for own in wanted if own != word for j in tokens.pieces(own)]
                if any(set(asked.keys(i, tokens.n)) & set(others) for i in tokens.pieces(word)):
                    values.append(np.isin(chosen[word], wanted).astype(float))
                continue
            sieve = [j for own in wanted for j in tokens.pieces(own)]
            values.append(mean([asked.row(attention, i, sieve) for i in tokens.pieces(word)]))
    return mean(values)


def _of_tokens(attention: Attention, tokens: Tokens, asked: Asked) -> dict[str, Any]:
    everywhere, specials = range(tokens.n), tokens.specials
    classifier = [i for i in specials if i == 0]
    sieves: dict[str, Any] = {
        "local": lambda i: [j for j in everywhere if abs(i - j) <= asked.window],
        "delimiter": lambda i: specials,
        "delimiter:cls": lambda i: classifier,
        "delimiter:sep": lambda i: [j for j in specials if j != 0],
    }
    return {
        role: mean([asked.row(attention, i, sieve(i)) for i in everywhere])
        for role, sieve in sieves.items()
    }


def _block(attention: Attention, tokens: Tokens, asked: Asked) -> dict[str, Any]:
    role = "block:ratio" if asked.score == "bias" else "block"
    separators = [i for i in tokens.specials if i != 0]
    first, second = ([i for i in range(tokens.n) if tokens.segments[i] == k] for k in (0, 1))
    if not first or not second or not any(i < second[0] for i in separators):
        return {role: None} | ({"block:evenness": None} if asked.score != "bias" else {})
    rows = []
    for i in range(tokens.n):
        own = [j for j in range(tokens.n) if tokens.segments[j] == int(i >= separators[0])]
        rows.append((i, own))
    plain = [asked.row(attention, i, own) for i, own in rows]
    if asked.score == "bias":
        return {role: mean(plain)}
    evenness = []
    for i, own in rows:
        inside = [j for j in own if j in asked.keys(i, tokens.n)]
        if len(inside) > 1:
            within = attention[..., i, inside]
            total = within.sum(-1, keepdims=True)
            share = within / np.where(total > 0, total, 1)
            evenness.append(_entropy(share) / np.log(len(inside)))
    return {role: mean(plain), "block:evenness": mean(evenness)}


def _hits(
    attention: Attention, tokens: Tokens, relations: Sequence[str], asked: Asked
) -> dict[str, Any]:
    """First choices: among every token for special tokens, among the others, or between words."""
    inner = [i for i in range(tokens.n) if i not in tokens.specials]

    def of_tokens(queries: Sequence[int], among: Sequence[int], sieve: Any) -> Any:
        rows = []
        for i in queries:
            inside = [j for j in sieve(i) if j in among and j in asked.keys(i, tokens.n)]
            if inside:
                first = np.array(among)[attention[..., i, among].argmax(-1)]
                rows.append(np.isin(first, inside).astype(float))
        return mean(rows)

    every, specials = range(tokens.n), tokens.specials
    window = range(-asked.window, asked.window + 1)
    separators = [j for j in specials if j != 0]
    own = {s: [j for j in every if tokens.segments[j] == s] for s in (0, 1)}
    paired = own[0] and own[1] and any(j < own[1][0] for j in separators)
    hits = {
        "local": of_tokens(inner, inner, lambda i: [i + k for k in window]),
        "delimiter": of_tokens(every, every, lambda i: specials),
        "delimiter:cls": of_tokens(every, every, lambda i: [j for j in specials if j == 0]),
        "delimiter:sep": of_tokens(every, every, lambda i: separators),
        "block": of_tokens(inner, inner, lambda i: own[tokens.segments[i]]) if paired else None,
    }
    between = first_choices(attention, tokens)
    for direction in WAYS:
        arcs: dict[str, list[Any]] = {relation: [] for relation in relations}
        for word, governor in enumerate(tokens.governors):
            labels = [name for name in tokens.labels(word) if name in relations]
            if governor < 0 or not labels:
                continue
            ((query, key),) = in_direction([(word, governor)], direction)
            ends = query, key
            pieces = [tokens.pieces(end) for end in ends]
            if any(j in asked.keys(i, tokens.n) for i in pieces[0] for j in pieces[1]):
                for relation in labels:
                    arcs[relation].append((between[ends[0]] == ends[1]).astype(float))
        along = [
            (between[query] == key).astype(float)
            for query, key in in_direction(tokens.every_arc(), direction)
            if any(
                j in asked.keys(i, tokens.n)
                for i in tokens.pieces(query)
                for j in tokens.pieces(key)
            )
        ]
        hits[f"syntactic:any:{direction}:every_arc"] = mean(along)
        pooled = f"syntactic:any:{direction}"
        hits[pooled] = mean([arc for own_arcs in arcs.values() for arc in own_arcs])
        hits |= {f"syntactic:{name}:{direction}": mean(found) for name, found in arcs.items()}
    return hits


WAYS = ("to_governor", "to_dependent", "to_earlier")


def in_direction(arcs: Iterable[tuple[Any, Any]], direction: str) -> Iterator[tuple[Any, Any]]:
    """The word that looks and the word that it looks for, of each dependent and governor."""
    for dependent, governor in arcs:
        is_later = dependent > governor
        to_governor = is_later if direction == "to_earlier" else direction == "to_governor"
        yield (dependent, governor) if to_governor else (governor, dependent)


def first_choices(attention: Attention, tokens: Tokens) -> dict[int, Any]:
    """For each word with pieces the other word (...,) that it attends to most."""
    words = [word for word in range(len(tokens.governors)) if tokens.pieces(word)]
    chosen = {}
    for word in words:
        others = [other for other in words if other != word]
        given = [
            np.mean([attention[..., i, tokens.pieces(o)].sum(-1) for i in tokens.pieces(word)], 0)
            for o in others
        ]
        if others:
            chosen[word] = np.array(others)[np.argmax(given, axis=0)]
    return chosen


def _entropy(weights: Attention) -> Attention:
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(weights > 0, weights * np.log(weights), 0.0).sum(-1)


COMPETING = ("near", "near:back", "between")


def _syntactic(
    attention: Attention, tokens: Tokens, relations: Sequence[str], asked: Asked
) -> dict[str, Any]:
    """An arc is the mean of its rows, a role the mean of its arcs; contrasts likewise."""
    scores: dict[str, Any] = {}
    for direction in WAYS:
        endings = ("", ":beyond_offset", *(f":{contrast}" for contrast in COMPETING))
        arcs: dict[str, dict[str, list[Any]]]
        arcs = {ending: {relation: [] for relation in relations} for ending in endings}
        for relation, dependent, governor in tokens.arcs(relations):
            # lists of pieces have the order of their words
            ((queries, keys),) = in_direction([(dependent, governor)], direction)
            rows = [asked.row(attention, i, keys) for i in queries]
            arcs[""][relation].append(mean(rows))
            divided = dependent if "/" in relation else None
            beyond = _contrast(attention, tokens, (queries, keys), divided, asked)
            arcs[":beyond_offset"][relation].append(beyond)
            for contrast in COMPETING:
                beyond = _beyond(attention, tokens, (queries, keys), contrast, asked)
                arcs[f":{contrast}"][relation].append(beyond)
        along = [
            mean([asked.row(attention, i, tokens.pieces(key)) for i in tokens.pieces(query)])
            for query, key in in_direction(tokens.every_arc(), direction)
        ]
        scores[f"syntactic:any:{direction}:every_arc"] = mean(along)
        for ending, by_relation in arcs.items():
            every = [arc for of_relation in by_relation.values() for arc in of_relation]
            scores[f"syntactic:any:{direction}{ending}"] = mean(every)
            for relation, of_relation in by_relation.items():
                scores[f"syntactic:{relation}:{direction}{ending}"] = mean(of_relation)
    return scores


def _contrast(
    attention: Attention,
    tokens: Tokens,
    ends: tuple[list[int], list[int]],
    divided: list[int] | None,
    asked: Asked,
) -> Any:
    """An arc less its controls, pair by pair; None if some pair has no control.

    ``divided`` are the pieces of the dependent whose class, open or closed, divides the relation:
    controls have a word of this class in its place.
    """
    queries, keys = ends
    place = None if divided is None else int(divided == keys)
    rows = []
    for i in queries:
        seen = [j for j in keys if j in asked.keys(i, tokens.n)]
        if not seen:
            continue
        pair = tokens.words[i], tokens.words[keys[0]]
        one = control(attention, tokens, i, pair, place, asked)
        if one is None:
            return None
        cells = [attention[..., i, j] - one for j in seen]
        rows.append(np.sum(cells, axis=0) * asked.scale(i, tokens.n, len(seen)))
    return mean(rows)


def control(
    attention: Attention,
    tokens: Tokens,
    query: int,
    pair: tuple[int, int],
    place: int | None,
    asked: Asked,
) -> Any:
    """Mean over the pairs of words of the query's sentence that no arc joins, at the offset.

    In a ``place`` of the pair they have a word of its class. Two words count once, in however many
    pieces. None if no such pair is in view.
    """
    total, weight = 0.0, 0.0
    segment = tokens.segments[query]
    own = [word for word, of in zip(tokens.words, tokens.segments, strict=True) if of == segment]
    for x in dict.fromkeys(own):
        y = x + pair[1] - pair[0]
        if y not in own or y == tokens.governors[x] or x == tokens.governors[y]:
            continue
        if place is not None and tokens.is_open((x, y)[place]) != tokens.is_open(pair[place]):
            continue
        pieces = [(i, j) for i in tokens.pieces(x) for j in tokens.pieces(y)]
        for i, j in pieces:
            if j in asked.keys(i, tokens.n):
                total = total + attention[..., i, j] / len(pieces)
                weight += 1 / len(pieces)
    return total / weight if weight else None


def _beyond(
    attention: Attention,
    tokens: Tokens,
    ends: tuple[list[int], list[int]],
    contrast: str,
    asked: Asked,
) -> Any:
    """An arc less the mean of its competitors; None without any in view."""
    queries, keys = ends
    rows, terms = [], []
    for i in queries:
        seen = [j for j in keys if j in asked.keys(i, tokens.n)]
        if seen:
            scale = asked.scale(i, tokens.n, len(seen))
            rows.append(scale * attention[..., i, seen].sum(-1))
            terms.append(scale * len(seen))
    taken = []
    for word in competitors(tokens, tokens.words[queries[0]], tokens.words[keys[0]], contrast):
        pieces = tokens.pieces(word)
        looking, seen_ = (pieces, keys) if contrast == "near:back" else (queries, pieces)
        pairs = [(i, j) for i in looking for j in seen_ if j in asked.keys(i, tokens.n)]
        taken.append(mean([attention[..., i, j] for i, j in pairs]))
    one = mean(taken)
    return None if one is None or not rows else mean(rows) - mean(terms) * one


def competitors(tokens: Tokens, query: int, key: int, contrast: str) -> list[int]:
    """The words that compete with the end of an arc, which is as far as the other end allows."""
    centre, partner = (key, query) if contrast == "near:back" else (query, key)
    words = []
    for k, own_class in enumerate(tokens.classes):
        is_joined = tokens.governors[k] == centre or tokens.governors[centre] == k
        is_near = 0 < abs(k - centre) <= abs(partner - centre)
        if contrast == "between":
            is_near = min(centre, partner) < k < max(centre, partner)
        is_alike = own_class == tokens.classes[partner]
        if tokens.sentences[k] == tokens.sentences[centre] and is_near and is_alike:
            words += [k] * (not is_joined)
    return words


def cut(example: Example, tokenizer: PreTrainedTokenizerBase) -> tuple[Tokens, list[int]]:
    """The tokens of an example and their ids: classifier, words, separator(s), words, separator."""
    added = [tokenizer.num_special_tokens_to_add(pair=pair) for pair in (False, True)]
    cls_id, sep_id = tokenizer("")["input_ids"]
    rows, end = [(cls_id, SPECIAL, SPECIAL)], (sep_id, SPECIAL, SPECIAL)
    governors: list[int] = []
    relations: list[str] = []
    classes: list[str] = []
    sentences: list[int] = []
    for segment, sentence in enumerate(example.sentences):
        if segment:  # BERT: one separator stands between; RoBERTa: one more
            rows += [end] * (added[1] - added[0] - 1)
        first = len(governors)
        for place, word in enumerate(sentence.words):
            own = tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            rows += [(piece, segment, first + place) for piece in own]
        governors += [g if g < 0 else first + g for g in sentence.governors]
        relations += sentence.relations
        classes += [upos.replace("PROPN", "NOUN") for upos in sentence.upos]
        sentences += [segment] * len(sentence.words)
        rows.append(end)
    ids, segments, words = map(list, zip(*rows, strict=True))
    return Tokens(segments, words, governors, relations, classes, sentences), ids


def attention_of(
    model: PreTrainedModel, tokens: Tokens, ids: list[int], token_types: bool
) -> Attention:
    """(layers, heads, n, n) as transformers returns it under eager attention."""
    inputs: dict[str, Any] = {"input_ids": torch.tensor([ids])}
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if token_types:
        boundary = tokens.specials[1]
        types = [int(position > boundary) for position in range(tokens.n)]
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        attentions = model(**inputs, output_attentions=True).attentions
    return np.stack([layer[0].double().numpy() for layer in attentions])


def largest_difference(
    values: NDArray[np.floating],
    roles: Sequence[str],
    expected: dict[str, Any],
    sizes: NDArray[np.float64],
    of: float = SUMS,
) -> float:
    """Largest difference over (..., roles) in units of its tolerance; infinite if presence differs.

    ``sizes`` (..., roles) are those of what was summed, ``of`` its error (`tests.rounding`).
    """
    worst = 0.0
    for k, role in enumerate(roles):
        ours, theirs = values[..., k], expected[role]
        if theirs is None or np.isnan(ours).any():
            if not (theirs is None and np.isnan(ours).all()):
                return float("inf")
            continue
        worst = max(worst, largest_excess(ours, theirs, sizes[..., k], of))
    return worst
