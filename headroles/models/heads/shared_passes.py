"""Passes over one batch under several gates, which compute no layer twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from headroles.models.heads.gates import HeadSites
from headroles.models.heads.projections import LayerProjections


class Block(NamedTuple):
    """A module that runs as a whole, and the rows of `HeadSites` in it, in their order.

    A layer of an encoder has one row, that of a decoder two where cross-attention is read too. An
    encoder whose heads are not looked at is a block without rows.
    """

    module: nn.Module
    rows: tuple[int, ...]


def blocks_of(sites: HeadSites) -> list[Block]:
    """Return the blocks of a model in the order in which they run; none if layers share modules."""
    if sites.layers_are_shared:
        return []
    rows_of: dict[nn.Module, list[int]] = {}
    if (first := sites.stack).takes_targets:
        rows_of[first.base.get_encoder()] = []
    for row, layer in enumerate(sites.layers):
        above = layer.find.stack.paths.output.partition("{}")[0] + "{}"
        rows_of.setdefault(layer.find.module(above), []).append(row)
    return [Block(module, tuple(rows)) for module, rows in rows_of.items()]


def order_of(sites: HeadSites) -> list[int]:
    """Return the rows in the order in which they run."""
    blocks = blocks_of(sites)
    return [row for block in blocks for row in block.rows] or [*range(sites.n_layers)]


class SharedPasses:
    """Passes over one batch that reuse the outputs of the pass before them.

    Memory holds the outputs of each layer for the one batch, and the outputs of heads of one layer.
    """

    def __init__(self, sites: HeadSites, values_are_read: bool = False) -> None:
        """Find the blocks; passes share nothing if layers share modules.

        With ``values_are_read`` every pass runs hooks of the value projections where it has gates.
        """
        self._blocks, self._layers = blocks_of(sites), sites.layers
        self._parts = [_before_gates(layer, values_are_read) for layer in sites.layers]
        self._outputs: dict[nn.Module, Any] = {}

    @contextmanager
    def next(self, shared: int) -> Iterator[None]:
        """Run a pass within the block; the pass after it is to share ``shared`` rows with it.

        That pass must have the same input and the same gates in the first ``shared`` rows that run.
        """
        before, self._outputs = self._outputs, {}

        def keep(module: nn.Module, inputs: Any, output: Any) -> None:
            self._outputs[module] = output

        with ExitStack() as stack:
            for module, output in before.items():
                module.forward = lambda *_, _output=output, **__: _output
                stack.callback(delattr, module, "forward")
            for module in self._shared(shared):
                stack.callback(module.register_forward_hook(keep).remove)
            yield

    def _shared(self, n_rows: int) -> Iterator[nn.Module]:
        """Yield the modules whose outputs are those of the pass before, if ``n_rows`` are."""
        for module, rows in self._blocks:
            if len(rows) > n_rows:
                for row in rows[:n_rows]:
                    find = self._layers[row].find
                    yield find.module(find.stack.paths.attention)
                yield from self._parts[rows[n_rows]]
                return
            yield module
            n_rows -= len(rows)


def _before_gates(layer: LayerProjections, values_are_read: bool) -> tuple[nn.Module, ...]:
    """Return the modules of a layer whose outputs no gate of this layer changes."""
    paths = layer.find.stack.paths
    if not values_are_read and not paths.output.startswith(f"{paths.attention}."):
        return (layer.find.module(paths.attention),)
    # others may be called for positions as well
    return () if paths.positions else layer.inputs


_BLOCK = "encoder.layer.{}.attention"


@contextmanager
def first_tokens_alone(sites: HeadSites) -> Iterator[None]:
    """Let the last layer run for first tokens alone, from the sum of attention and its input on.

    Without effect for families that lack a module for that sum, and where layers share modules.
    """
    if sites.layers_are_shared or not sites.stack.paths.output.startswith(f"{_BLOCK}."):
        yield
        return

    def cut(module: nn.Module, inputs: Any, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (output[0][:, :1], *output[1:])

    block = sites.stack.part.get_submodule(_BLOCK.format(sites.n_layers - 1))
    with block.register_forward_hook(cut):
        yield
