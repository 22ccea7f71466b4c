"""How much do the heads of a layer share? Model -> Redundancy of query and key projections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict, cast

import numpy as np
import pandas as pd
from msgspec import Meta, structs

from headroles.arrays import FloatArray, IndexArray
from headroles.errors import UsageError
from headroles.inference.permutation import shuffle_labels
from headroles.models.heads.remaining import removed_heads
from headroles.models.options import ModelOptions
from headroles.models.shared.factorisation import head_singular
from headroles.options import Convert, Seed, path_text, takes
from headroles.results.consistency import Rule, answers_by
from headroles.results.result import Result
from headroles.results.shown import Grid, Shown
from headroles.studies.classification.role_table import RoleTable
from headroles.testing.evidence import RANK, find_p_values
from headroles.testing.hypotheses import Hypotheses
from headroles.testing.options import CorrectionOptions
from headroles.wording import listed

if TYPE_CHECKING:
    from headroles.models.loading.encoder import Model
    from headroles.models.shared.sites import Site

ENERGY_SHARES = (0.9, 0.95, 0.99)
_CORRECTION = CorrectionOptions(correction="fdr_bh")
_RANDOM_PAIRS, _CHUNK = 1999, 64


@dataclass(frozen=True, kw_only=True)
class RedundancyOptions(ModelOptions):
    """Options of the tests of overlaps."""

    title: ClassVar[str] = "Tests"

    roles_from: Annotated[str | None, Convert(path_text)] = None
    """Folder that classify or assign wrote, to test the heads of each role."""
    draws: Annotated[int, Meta(ge=1)] = 99
    """Layers of random heads to compare each layer with."""
    permutations: Annotated[int, Meta(ge=1)] = 9999
    """Shuffles of the heads of each layer, to test roles."""
    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    """Level of the tests."""
    seed: Seed = 0
    """Seed of draws and shuffles."""


class RedundancyFacts(TypedDict):
    """Overlap of two heads by ``chance``, and the rows of the views ``layers`` and ``roles``."""

    chance: float
    layers: list[dict[str, Any]]
    roles: list[dict[str, Any]]


@dataclass(frozen=True, repr=False, eq=False)
class Redundancy(Result[RedundancyOptions, RedundancyFacts]):
    """Overlap of the query and key projections of a layer's heads.

    ``frame`` has a row for every two heads of a layer, with the columns of ``columns``: the
    overlaps of their query spaces and of their key spaces, 0 to 1, and whether the overlaps are
    shown to be larger than by chance (``query_shared``, ``key_shared``). Layers that share a module
    are listed as their first layer. The other views are ``layers``, dimensions that hold 90, 95 and
    99 % of the energy, and ``roles``, empty if no roles were given. ``facts`` have the overlap of
    two heads by chance.

    With ``redundancy`` as `find_redundancy` returns it:

    >>> len(redundancy.frame)
    18
    """

    kind: ClassVar[str] = "redundancy"
    question: ClassVar[str] = "How much do the heads of a layer share?"
    columns: ClassVar[tuple[str, ...]] = tuple(
        "layer head other query_overlap query_p_value query_p_adjusted query_shared "
        "key_overlap key_p_value key_p_adjusted key_shared".split()
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        answers_by("query_shared", "query_p_adjusted", True),
        answers_by("key_shared", "key_p_adjusted", True),
    )
    may_be_empty: ClassVar[bool] = True
    views: ClassVar[tuple[str, ...]] = ("long", "layers", "roles")

    def check_layers(self) -> None:
        """Raise ValueError unless every two heads of a layer have a row; layers may be missing."""
        n_heads = dict(zip(self.layers["layer"], self.layers["heads"], strict=True))
        for layer, n_rows in self.frame["layer"].value_counts().items():
            if n_rows != comb(n_heads[layer], 2):
                raise ValueError(
                    f"it has {n_rows} pairs of the {n_heads[layer]} heads of layer {layer}"
                )

    @property
    def layers(self) -> pd.DataFrame:
        """A row per layer: mean dimensions of single heads, of the sum of all, and by chance."""
        return pd.DataFrame(self.facts["layers"])

    @property
    def roles(self) -> pd.DataFrame:
        """A row per role and projection: overlap of heads with the role, and by chance."""
        return pd.DataFrame(self.facts["roles"])

    def summarize(self) -> Iterator[Shown]:
        """Tabulate dimensions of layers and overlaps of pairs; name the roles that overlap."""
        layers, pairs, alpha = self.layers, self.frame, self.options.alpha
        needed, drawn = layers["sum_90%"], layers["sum_90%_by_chance"]
        fewer = (layers["p_adjusted"] <= alpha).sum()
        yield (
            f"The heads of a layer together use {needed.min():.0f} to {needed.max():.0f} dimensions"
            " for 90 % of what their queries and keys compare, where heads alike in random spaces "
            f"would use {drawn.min():.0f} to {drawn.max():.0f}: fewer than by chance in {fewer} of "
            f"{len(layers)} layers.\nOf {len(pairs)} pairs of heads of one layer "
            f"{pairs['query_shared'].sum():.0f} share query space and "
            f"{pairs['key_shared'].sum():.0f} share key space beyond chance."
        )
        yield (
            "Dimensions that hold 90, 95 and 99 % of the energy of query-key products: of single "
            "heads (mean) and of the sum of all heads; by chance: of heads alike in random spaces"
        )
        cells = {
            "layer": "{layer}",
            "one head": "{head_90%:.1f} {head_95%:.1f} {head_99%:.1f}",
            "of": "{head_size}",
            "all heads": "{sum_90%} {sum_95%} {sum_99%}",
            "of ": "{most}",
            "90 % by chance": "{sum_90%_by_chance:.1f}",
            "p": "{p_adjusted:.3f}",
        }
        most = np.minimum(layers["width"], layers["heads"] * layers["head_size"])
        yield Grid.from_frame(layers.assign(most=most), cells)
        yield (
            f"Overlap of the spaces of two heads; by chance {self.facts['chance']:.3f} "
            f"(false discovery rate {alpha:g})"
        )
        yield self._pairs()
        if len(self.roles):
            above = self.roles[self.roles["shared"]].sort_values("p_value", kind="stable")
            roles_above = [f"{row.role} ({row.projection})" for row in above.itertuples()]
            yield (
                "Roles whose heads overlap more than heads shuffled within layers: "
                f"{listed(roles_above) or 'none'}, of {self.roles['role'].nunique()}"
            )

    def _pairs(self) -> Grid:
        by_layer = self.frame.groupby("layer")
        overlap = by_layer[["query_overlap", "key_overlap"]].mean().add_suffix("_mean")
        shared = by_layer[["query_shared", "key_shared"]].sum().add_suffix("_sum")
        best = self.frame.loc[by_layer["key_overlap"].idxmax()].assign(pairs=by_layer.size().array)
        cells = {
            "layer": "{layer}",
            "queries": "{query_overlap_mean:.3f}",
            "pairs above": "{query_shared_sum} of {pairs}",
            "keys": "{key_overlap_mean:.3f}",
            "pairs above ": "{key_shared_sum} of {pairs}",
            "keys most alike": "{head} and {other} {key_overlap:.3f}",
        }
        return Grid.from_frame(best.join(overlap.join(shared), on="layer"), cells)


@takes(RedundancyOptions)
def find_redundancy(model: Model, options: RedundancyOptions) -> Redundancy:
    """Count the dimensions of the queries and keys of heads, and test which heads share them.

    Of each layer, the singular values of the products query_h' key_h of single heads, and of their
    sum, are compared with heads of the same singular values in random spaces. Of each two heads of
    a layer, the overlap of their query spaces and of their key spaces (the mean squared cosine of
    the principal angles) is compared with random spaces of the same size. With roles, the overlap
    of heads of one role is compared with heads shuffled within layers. All p-values of one kind are
    corrected together by Benjamini-Hochberg. Only the weights are read, no text.

    Args:
        model: a folder, a hub id, or a loaded model in evaluation mode.
        options: keyword arguments, described below.

    Raises:
        ModelSupportError: a family with position terms in its scores.
        UsageError: roles of a model of another shape, or of one that lacks heads.
        ModelError, TokenizerError: as `score_heads`.
        StorageError: as `RoleTable.load`.

    With ``model`` an encoder of 3 layers with 4 heads each, and random weights:

    >>> from headroles import find_redundancy
    >>> redundancy = find_redundancy(model, draws=9)
    >>> len(redundancy), bool(redundancy.frame["query_shared"].any())
    (18, False)
    """
    from headroles.models.attention.reader import open_reader
    from headroles.models.loading.encoder import check_is_model, load_encoder
    from headroles.models.shared.sites import find_sites

    table = None if options.roles_from is None else RoleTable.load(options.roles_from)
    check_is_model(model)
    encoder = load_encoder(model, options)
    with open_reader(encoder.stack) as reader:
        described = reader.description
    if table is not None and (removed := removed_heads(encoder.model.config)):
        raise UsageError(
            f"the model lacks {len(removed)} of its heads, and comparing roles needs layers with "
            "all heads; take the model that it was pruned from, or leave the roles out"
        )
    sites = find_sites(encoder.stack)
    rng = np.random.default_rng(options.seed)
    layers = _layers(sites, options, rng)
    common = [(overlaps(site.maps.query), overlaps(site.maps.key)) for site in sites]
    pairs = _pairs(sites, common, options, rng)
    by_role = pd.DataFrame() if table is None else _roles(sites, common, table, options)
    sizes = [site.maps.query.shape[1] / site.maps.query.shape[2] for site in sites]
    return Redundancy.made(
        pairs,
        options,
        model=structs.replace(encoder.description, **described),
        facts={
            "chance": float(np.mean(sizes)),
            "layers": cast(list[dict[str, Any]], layers.to_dict("records")),
            "roles": cast(list[dict[str, Any]], by_role.to_dict("records")),
        },
    )


def _layers(
    sites: tuple[Site, ...], options: RedundancyOptions, rng: np.random.Generator
) -> pd.DataFrame:
    """Return a row for each layer: dimensions of heads, of their sum, and of sums by chance."""
    rows, drawn = [], []
    for site in sites:
        heads, size, width = site.maps.query.shape
        strength = head_singular(site.maps.query, site.maps.key)[1]
        total = sum_singular(site.maps.query, site.maps.key)
        drawn.append(
            dimensions_for(random_sums(strength, width, options.draws, rng), ENERGY_SHARES[0])
        )
        row = {"layer": site.layers[0], "heads": heads, "head_size": size, "width": width}
        of_heads = {f"head_{x:.0%}": dimensions_for(strength, x).mean() for x in ENERGY_SHARES}
        of_sum = {f"sum_{x:.0%}": int(dimensions_for(total, x)) for x in ENERGY_SHARES}
        rows.append({**row, **of_heads, **of_sum})
    frame, by_chance = pd.DataFrame(rows), np.stack(drawn, axis=1, dtype=np.float64)
    frame[f"sum_{ENERGY_SHARES[0]:.0%}_by_chance"] = by_chance.mean(0)
    ranks = Hypotheses.from_draws(frame[f"sum_{ENERGY_SHARES[0]:.0%}"], by_chance, size=0)
    tested = find_p_values(ranks, _CORRECTION, "less", RANK)
    return frame.assign(p_value=tested.single, p_adjusted=tested.adjusted)


def _pairs(
    sites: tuple[Site, ...],
    common: list[tuple[FloatArray, FloatArray]],
    options: RedundancyOptions,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return overlaps of every two heads of a layer, with p-values against random spaces."""
    frames, drawn = [], []
    chance: dict[tuple[int, int], FloatArray] = {}
    for site, (query, key) in zip(sites, common, strict=True):
        _, size, width = site.maps.query.shape
        if (size, width) not in chance:
            chance[size, width] = random_overlaps(size, width, _RANDOM_PAIRS, rng)
        first, second = np.triu_indices(len(query), 1)
        numbers = np.array(site.heads)
        columns = {"layer": site.layers[0], "head": numbers[first], "other": numbers[second]}
        overlap = {"query_overlap": query[first, second], "key_overlap": key[first, second]}
        frames.append(pd.DataFrame({**columns, **overlap}))
        drawn += [chance[size, width]] * 2 * len(first)
    frame = pd.concat(frames, ignore_index=True)
    observed = frame[["query_overlap", "key_overlap"]].to_numpy()
    ranks = Hypotheses.from_draws(observed.ravel(), np.stack(drawn, axis=1), size=0)
    tested = find_p_values(ranks, _CORRECTION, "greater", RANK)
    frame[["query_p_value", "key_p_value"]] = tested.single.reshape(observed.shape)
    frame[["query_p_adjusted", "key_p_adjusted"]] = tested.adjusted.reshape(observed.shape)
    frame[["query_shared", "key_shared"]] = tested.shows(options.alpha).reshape(observed.shape)
    return frame


def _roles(
    sites: tuple[Site, ...],
    common: list[tuple[FloatArray, FloatArray]],
    roles: RoleTable,
    options: RedundancyOptions,
) -> pd.DataFrame:
    """Test for every role whether its heads overlap more than others of their layers."""
    has = roles.wide().set_index(["layer", "head"])
    shape = (len(sites), len(common[0][0]))
    if len(has) != shape[0] * shape[1]:
        raise UsageError(
            f"the roles are of {len(has)} heads, and the model has {shape[0]} layers x {shape[1]} "
            "heads with projections of their own; give the roles of this model"
        )
    labels = has.to_numpy(dtype=bool).reshape(*shape, -1)
    frames, draws = [], []
    for projection, likeness in zip(("query", "key"), zip(*common, strict=True), strict=True):
        shuffled = shuffle_labels(
            np.stack(likeness), labels, n_resamples=options.permutations, seed=options.seed
        )
        columns = {
            "role": list(has.columns),
            "projection": projection,
            "heads": labels.sum(axis=(0, 1)),
            "pairs": shuffled.n_pairs,
            "overlap": shuffled.mean,
            "expected": shuffled.drawn.mean(0),
        }
        frames.append(pd.DataFrame(columns))
        draws.append(shuffled.drawn)
    frame, drawn = pd.concat(frames, ignore_index=True), np.concatenate(draws, axis=1)
    some = frame["overlap"].notna().to_numpy()
    frame = frame[some].reset_index(drop=True)
    ranks = Hypotheses.from_draws(frame["overlap"], drawn[:, some], size=1)
    tested = find_p_values(ranks, _CORRECTION, "greater", RANK)
    shown = tested.shows(options.alpha)
    return frame.assign(p_value=tested.single, p_adjusted=tested.adjusted, shared=shown)


def dimensions_for(strength: FloatArray, share: float) -> IndexArray:
    """Return how many of the singular values (..., n) capture this share of their squares."""
    squares = np.sort(strength, axis=-1)[..., ::-1] ** 2
    captured = squares.cumsum(axis=-1) / squares.sum(axis=-1, keepdims=True)
    # rounding must not add a dimension if the share is met exactly
    return np.asarray((captured < share - 1e-12).sum(axis=-1) + 1)


def sum_singular(query: FloatArray, key: FloatArray) -> FloatArray:
    """Return the singular values of the sum over heads of query_h' key_h, of maps (H, d, D)."""
    first, second = (maps.reshape(-1, maps.shape[2]) for maps in (query, key))
    return np.asarray(np.linalg.svd(first.T @ second, compute_uv=False))


def overlaps(maps: FloatArray) -> FloatArray:
    """Return the overlaps (H, H) of the row spaces of maps (H, d, D), 1 if they are the same.

    An overlap is the mean squared cosine of the principal angles: the share of squared length of
    vectors in one space that lies in the other.
    """
    heads, size, width = maps.shape
    basis = np.linalg.qr(maps.swapaxes(1, 2))[0].swapaxes(1, 2).reshape(-1, width)
    squares = ((basis @ basis.T) ** 2).reshape(heads, size, heads, size)
    return np.asarray(squares.sum(axis=(1, 3)) / size)


def random_overlaps(size: int, width: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw overlaps (n,) of two random spaces of ``size`` dimensions among ``width``.

    Their mean is size / width. By symmetry, one of the spaces can be that of the first coordinates.
    """
    parts = []
    for start in range(0, n, _CHUNK):
        drawn = rng.standard_normal((min(_CHUNK, n - start), width, size))
        basis = np.linalg.qr(drawn)[0]
        parts.append((basis[:, :size] ** 2).sum(axis=(1, 2)) / size)
    return np.concatenate(parts)


def random_sums(strength: FloatArray, width: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw singular values (n, width) of sums of heads with singular values ``strength`` (H, d).

    Each head keeps its singular values, and its query and key spaces are random: the distribution
    if heads share dimensions only by chance.
    """
    heads, size = strength.shape
    sums = []
    for _ in range(n):
        drawn = rng.standard_normal((2, heads, width, size))
        query, key = np.linalg.qr(drawn)[0].swapaxes(2, 3)  # an orthonormal basis for each head
        sums.append(sum_singular(query * strength[:, :, None], key))
    return np.array(sums)
