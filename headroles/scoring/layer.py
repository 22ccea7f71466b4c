"""Attention of one layer as scores read it; every quantity is computed once and cached."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from headroles.roles import Candidates, Readout
from headroles.roles.batch import ATTENDING, EVERY, TOKENS_OF_WORDS


def read_scores(attention: Tensor, readout: Readout) -> Tensor:
    """Read the scores (batch, heads, roles) of one layer, in the columns of the ``readout``.

    ``attention`` (batch, heads, query, key) has rows of real queries that sum to 1 over real keys;
    rows of padding may hold any finite numbers. Scores of roles that an example lacks are
    undefined. The readout's tensors must be on the device of the attention.
    """
    constants: list[Any] = [part.limits[0] for part in readout.by_kind]
    layer = AttentionLayer(attention.float(), readout.key_sets, readout.candidates)
    read = torch.cat(
        [part.function(layer.among(part.among), *part.arrays) for part in readout.by_kind], dim=-1
    )
    if readout.candidates is not None:
        # choices hide NaN and inf of attention; 0 * attention does not
        read += 0 * layer.attention.sum((-2, -1))[..., None]
    return read + torch.cat(constants, dim=-1)[:, None]


class AttentionLayer:
    """Attention (batch, heads, query, key) in float32, and ``key_sets`` (batch, key, K).

    Key sets are 1 where a key belongs to a set, 0 elsewhere. With ``candidates``, first choices can
    be read too.
    """

    def __init__(self, attention: Tensor, key_sets: Any, candidates: Candidates | None) -> None:
        self.attention = attention
        self.key_sets: Tensor = key_sets
        self._candidates: Any = candidates
        self._choices: dict[str, ChoiceLayer] = {}

    def among(self, kind: str | None) -> AttentionLayer | ChoiceLayer:
        """Return the first choices among a ``kind`` of candidates; attention without any."""
        if kind is None or self._candidates is None:
            return self
        if kind not in self._choices:
            self._choices[kind] = ChoiceLayer(self._choose(kind), self.key_sets)
        return self._choices[kind]

    def at(self, pairs: Tensor) -> Tensor:
        """Return the attention (batch, heads, P) at ``pairs`` (batch, P) of query * N + key."""
        batch, heads, _, _ = self.attention.shape
        index = pairs[:, None].expand(-1, heads, -1)
        return self.attention.reshape(batch, heads, -1).gather(2, index)

    @cached_property
    def masses(self) -> Tensor:
        """Attention of every row to each key set (batch, heads, query, K)."""
        return sums_of(self.attention, self.key_sets)

    @cached_property
    def entropies(self) -> Tensor:
        """Entropy of every row (batch, heads, query) in nats, with 0 ln 0 = 0."""
        # a weight below the smallest normal number contributes 0; the clamp avoids ln 0 = -inf
        tiny = torch.finfo(self.attention.dtype).tiny
        logarithms = self.attention.clamp_min(tiny).log_()
        return -torch.einsum("bhqk,bhqk->bhq", self.attention, logarithms)

    @cached_property
    def distances(self) -> Tensor:
        """Mean distance of keys in tokens (batch, heads, query), weighted by attention."""
        # padding has no attention, so its distances do not count
        positions = torch.arange(self.attention.shape[-1], device=self.attention.device)
        apart = (positions[:, None] - positions).abs().to(self.attention.dtype)
        return torch.einsum("bhqk,qk->bhq", self.attention, apart)

    def largest(self, barred: Tensor) -> Tensor:
        """Return the largest attention (batch, heads, query) to keys that are not ``barred``."""
        return self.attention.masked_fill(barred[:, None, None], 0).amax(dim=-1)

    @cached_property
    def entropies_within(self) -> Tensor:
        """Entropy of the attention within each set (batch, heads, query, K), in nats.

        Attention within a set is normalised by its mass. Without any mass the entropy is 0, as for
        the most uneven attention.
        """
        # a mass below the smallest normal number has no digits to divide by
        there = self.masses > torch.finfo(self.masses.dtype).tiny
        # -sum p/m ln(p/m) = (-sum p ln p) / m + ln m
        safe = self.masses.where(there, 1.0)
        sums = sums_of(torch.special.entr(self.attention), self.key_sets)
        return (sums / safe + safe.log()).where(there, 0.0)

    def _choose(self, kind: str) -> Tensor:
        """Return the chosen keys (batch, heads, query); for words, as indices of first pieces."""
        attention, candidates = self.attention, self._candidates
        if kind == EVERY:
            return first_largest(attention)
        if kind == TOKENS_OF_WORDS:
            return first_largest(attention, candidates.barred[:, None, None])
        # sums over the pieces of a query have their maximum where the means have
        table = self._between_words
        axis = -1
        if kind == ATTENDING:
            # rows of no word are undefined
            n_pieces = candidates.n_pieces.where(candidates.n_pieces > 0, torch.inf)
            table, axis = table / n_pieces[:, None, :, None], -2
        # a word attending to itself says nothing of relations between words: rank it last
        table.view(torch.int32).diagonal(dim1=-2, dim2=-1).fill_(_BARRED)
        chosen = first_largest(table, axis=axis)
        keys = candidates.starts[:, None].expand(-1, table.shape[1], -1).gather(2, chosen)
        at_tokens: Tensor = keys.gather(2, candidates.words[:, None].expand(-1, table.shape[1], -1))
        return at_tokens

    @cached_property
    def _between_words(self) -> Tensor:
        """Return sums over the pieces of both words (batch, heads, word, word).

        Rows beyond the words of an example are undefined.
        """
        candidates, to_words = self._candidates, self._to_words
        batch, heads, width, n_words = to_words.shape
        # rows of first pieces are picked; few words have several pieces, which are added one by one
        first_rows = torch.arange(0, batch * heads * width, width, device=to_words.device)
        rows = first_rows.view(batch, heads, 1) + candidates.starts[:, None]
        picked = to_words.flatten(0, 2).index_select(0, rows.flatten())
        between: Tensor = picked.view(batch, heads, n_words, n_words)
        for examples, tokens, words in candidates.extra_pieces:
            between[examples, :, words] += to_words[examples, :, tokens]
        return between

    @property
    def _to_words(self) -> Tensor:
        """Return attention of tokens to words, sums over pieces (batch, heads, query, word)."""
        attention, candidates = self.attention, self._candidates
        _, heads, width, _ = attention.shape
        if attention.device.type == "cpu" and width <= WIDEST_PRODUCT:
            numbers = torch.arange(candidates.starts.shape[1])
            is_piece = (candidates.words[..., None] == numbers) & ~candidates.barred[..., None]
            return sums_of(self.attention, is_piece.float())
        columns = candidates.starts[:, None, None].expand(-1, heads, width, -1)
        to_words: Tensor = attention.gather(3, columns)
        for examples, tokens, words in candidates.extra_pieces:
            to_words[examples, :, :, words] += attention[examples, :, :, tokens]
        # no attention beyond the words of an example
        return to_words.mul_(candidates.n_pieces.clamp_max(1)[:, None, None])


def sums_of(of_pairs: Tensor, key_sets: Tensor) -> Tensor:
    """Sum pairs (batch, heads, query, key) over the keys of each set (batch, heads, query, K)."""
    batch, heads, width, _ = of_pairs.shape
    sums = torch.bmm(of_pairs.reshape(batch, heads * width, width), key_sets)
    return sums.view(batch, heads, width, -1)


WIDEST_PRODUCT = 128
"""Tokens up to which a product of matrices sums attention to words faster than picking pieces.

On a CPU: elsewhere such a product may round weights to fewer digits, and make ties.
"""
_BARRED = -1
"""All bits are set: as an integer, it is less than the bits of any float that is not negative."""
_WIDE = 64
"""Rows in which NumPy finds the largest integer faster than torch on a CPU."""


def first_largest(weights: Tensor, barred: Tensor | None = None, axis: int = -1) -> Tensor:
    """Return the indices of the largest entries of ``weights`` (..., m, n), first of ties.

    They are the largest of rows, or with the ``axis`` -2 of columns. Entries are float32 and not
    negative; ``barred`` entries, of a shape that broadcasts, rank after all others. The result is
    that of ``argmax`` in half its time: the bits of such floats, read as integers, have the same
    order, and the largest integer is found faster.
    """
    bits = weights.view(torch.int32)
    if barred is not None:
        bits = bits | -barred.int()  # all bits of -1 are set
    n = bits.shape[axis]
    if bits.device.type == "cpu" and n >= _WIDE:
        return torch.from_numpy((bits if axis == -1 else bits.mT.contiguous()).numpy().argmax(-1))
    from_end = torch.arange(n, 0, -1, dtype=torch.int32, device=bits.device)
    table = (from_end if axis == -1 else from_end[:, None]).expand(bits.shape[-2:])
    most = bits.amax(dim=axis, keepdim=True)
    behind = bits - most if barred is None else bits.sub_(most)  # a new tensor takes its time
    # the sign alone: 0 for the largest, -1 for all others; from_end set in it, the first of the
    # largest is greatest
    ranks = behind.bitwise_right_shift_(31).bitwise_or_(table.contiguous())
    return n - ranks.amax(dim=axis).long()


class ChoiceLayer:
    """First choices (batch, heads, query) read as attention: 1 at the choice, 0 elsewhere."""

    def __init__(self, chosen: Tensor, key_sets: Tensor) -> None:
        self.chosen = chosen
        self.key_sets = key_sets

    def at(self, pairs: Tensor) -> Tensor:
        """Return 1 where a pair (batch, P) of query * N + key is a choice, as (batch, heads, P)."""
        width = self.chosen.shape[-1]
        queries = (pairs // width)[:, None].expand(-1, self.chosen.shape[1], -1)
        return (self.chosen.gather(2, queries) == (pairs % width)[:, None]).to(self.key_sets.dtype)

    @cached_property
    def masses(self) -> Tensor:
        """Whether the choice belongs to each set (batch, heads, query, K), as 1 or 0."""
        sets = self.key_sets[:, None].expand(-1, self.chosen.shape[1], -1, -1)
        return sets.gather(2, self.chosen[..., None].expand(-1, -1, -1, sets.shape[-1]))
