"""Passes without computations of earlier passes, or without outputs that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any, cast

from torch import Tensor, nn

from headroles.models.families import Paths, encoder_of, find_family
from headroles.models.heads.gates import HeadSites
from headroles.models.heads.projections import PathFinder

_BLOCK = "encoder.layer.{}.attention"


class SharedPasses:
    """Passes over one batch that reuse the outputs of the pass before them.

    Memory holds the outputs of each layer for the one batch, and the outputs of heads of one layer.
    """

    def __init__(self, sites: HeadSites, values_are_read: bool = False) -> None:
        """Find the layers; passes share nothing if layers share modules.

        With ``values_are_read`` every pass runs hooks of the value projections where it has gates.
        """
        base, family = encoder_of(sites.model), find_family(sites.model)
        paths = cast(Paths, family.paths)
        finders = [
            PathFinder(base, family, layer)
            for layer in range(0 if sites.layers_are_shared else sites.n_layers)
        ]
        self._layers = [find.module(paths.output.partition("{}")[0] + "{}") for find in finders]
        self._parts: list[tuple[nn.Module, ...]] = [() for _ in sites.layers]
        if not values_are_read and not paths.output.startswith(f"{paths.attention}."):
            self._parts = [(find.module(paths.attention),) for find in finders]
        elif self._layers and not paths.positions:
            # those with position terms may be called for positions as well
            self._parts = [layer.inputs for layer in sites.layers]
        self._outputs: dict[nn.Module, Any] = {}

    @contextmanager
    def next(self, shared: int) -> Iterator[None]:
        """Run a pass within the block; the pass after it is to share ``shared`` layers with it.

        That pass must have the same input and the same gates in the lowest ``shared`` layers.
        """
        before, self._outputs = self._outputs, {}

        def keep(module: nn.Module, given: Any, output: Any) -> None:
            self._outputs[module] = output

        with ExitStack() as stack:
            for module, output in before.items():
                module.forward = lambda *_, _output=output, **__: _output
                stack.callback(delattr, module, "forward")
            for module in chain(self._layers[:shared], *self._parts[shared : shared + 1]):
                stack.callback(module.register_forward_hook(keep).remove)
            yield


@contextmanager
def first_tokens_alone(sites: HeadSites) -> Iterator[None]:
    """Let the last layer run for first tokens alone, from the sum of attention and its input on.

    Without effect for families that lack a module for that sum, and where layers share modules.
    """
    base, paths = encoder_of(sites.model), find_family(sites.model).paths
    if sites.layers_are_shared or not cast(Paths, paths).output.startswith(f"{_BLOCK}."):
        yield
        return

    def cut(module: nn.Module, given: Any, output: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (output[0][:, :1], *output[1:])

    block = base.get_submodule(_BLOCK.format(sites.n_layers - 1))
    with block.register_forward_hook(cut):
        yield
