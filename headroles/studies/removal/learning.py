"""Numbers that are learnt by updates, kept every so often so that they can be learnt further."""

from __future__ import annotations

import time

import torch
from safetensors.torch import load, save
from torch import Tensor

from headroles.storage import OpenParts

SECONDS_BETWEEN = 20.0
"""Seconds of learning that a run may lose if it is cut short."""
_DONE = "updates"


class Learning:
    """The numbers that ``adam`` updates, as they were kept under ``name`` or else as they are.

    ``done`` is how many updates they have had of ``n_updates``. With these numbers and the state of
    ``adam`` the next update is to the bit what it would have been; random numbers are left to the
    caller. Nothing is kept without ``parts``.
    """

    def __init__(
        self, adam: torch.optim.Adam, n_updates: int, parts: OpenParts | None, name: str
    ) -> None:
        """Raises StorageError for a state that cannot be read, or is one of other numbers."""
        self.done = 0
        self._adam, self._n_updates, self._parts, self._name = adam, n_updates, parts, name
        self._numbers: list[Tensor] = [
            one for group in adam.param_groups for one in group["params"]
        ]
        if parts is not None and name in parts:
            parts.decode(name, lambda content: self._take_up(load(content)))
        self._kept_at = time.monotonic()

    def count_update(self) -> None:
        """One more update is done; now and then, and after the last one, all is kept."""
        self.done += 1
        is_last = self.done == self._n_updates
        if self._parts is None:
            return
        if is_last or time.monotonic() - self._kept_at >= SECONDS_BETWEEN:
            self._parts.write(self._name, save(self._state(with_adam=not is_last)))
            self._kept_at = time.monotonic()

    def _state(self, with_adam: bool) -> dict[str, Tensor]:
        found = {_DONE: torch.tensor(self.done)}
        for number, values in enumerate(self._numbers):
            found[f"{number}"] = values.detach().contiguous()
            if with_adam:
                of_adam = self._adam.state[values].items()
                found |= {f"{number} {name}": one.contiguous() for name, one in of_adam}
        return found

    def _take_up(self, state: dict[str, Tensor]) -> None:
        self.done = int(state.pop(_DONE))
        with torch.no_grad():
            for number, values in enumerate(self._numbers):
                values.copy_(state.pop(f"{number}"))
        of_adam: dict[int, dict[str, Tensor]] = {}
        for key, one in state.items():
            place, name = key.split()
            of_adam.setdefault(int(place), {})[name] = one
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": of_adam, "param_groups": groups})
