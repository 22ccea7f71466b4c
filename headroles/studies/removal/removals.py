"""Which heads are removed together to see what is lost without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroles.models.kept_heads import Head
from headroles.studies.removal.ablation_options import AblateOptions
from headroles.studies.removal.orders import heads_by_role, load_roles, present_heads
from headroles.tasks import TaskRun

THIRDS = ("lower", "middle", "upper")


@dataclass(frozen=True)
class Removal:
    """Heads that are removed together, and what tables call them."""

    kind: str
    name: str
    heads: tuple[Head, ...]
    layer: int = -1
    head: int = -1


def removals_of(run: TaskRun, options: AblateOptions) -> list[Removal]:
    """The sets of heads that are removed, as asked for."""
    heads = present_heads(run)
    layers = sorted({layer for layer, _ in heads})
    of_layer = {layer: tuple(one for one in heads if one[0] == layer) for layer in layers}
    found: list[Removal] = []
    for kind in options.sets:
        if kind == "single":
            found += [Removal(kind, f"{one[0]}-{one[1]}", (one,), *one) for one in heads]
        elif kind == "others":
            for one in heads:
                rest = tuple(other for other in of_layer[one[0]] if other != one)
                if rest:
                    found.append(Removal(kind, f"layer {one[0]} but {one[1]}", rest, *one))
        elif kind == "layers":
            found += [
                Removal(kind, f"layer {layer}", own, layer) for layer, own in of_layer.items()
            ]
        elif kind == "thirds":
            for name, own in zip(
                THIRDS, np.array_split(np.arange(run.shape[0]), len(THIRDS)), strict=True
            ):
                third = tuple(head for head in heads if head[0] in own)
                if third:
                    found.append(Removal(kind, f"{name} third", third))
        else:
            having = heads_by_role(load_roles(str(options.roles_from)), run)
            found += [Removal(kind, role, tuple(sorted(own))) for role, own in having.items()]
    return found
