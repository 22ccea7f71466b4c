"""Commands about headroles itself: families of models and the machine."""

from __future__ import annotations

import os
import platform
from typing import Any

from headroles.cli import console
from headroles.cli.flags import OutputOptions


def models(output: OutputOptions) -> None:
    """List families of models. Those that cannot be scored come with the reason."""
    from headroles.models.families import FAMILIES, REFUSED
    from headroles.results.shown import Grid

    columns = ("name", "reads", "read_through", "note")
    supported = {
        kind: {name: getattr(family, name) for name in columns} for kind, family in FAMILIES.items()
    }
    if output.json:
        console.print_json({"supported": supported, "refused": REFUSED})
        return
    rows = tuple(
        tuple(listing if isinstance(listing, str) else ", ".join(listing) for listing in row)
        for row in map(dict.values, supported.values())
    )
    titles = ("family", "attention", "read through", "note")
    console.print_shown([Grid(titles, rows, left=frozenset(titles))])
    console.say(
        "Decoders and cross-attention of these encoder-decoders are read with --attention decoder "
        "or cross. Other encoders and decoders (GPT-J, OPT, Phi, ...), code from the "
        "hub included, are read through transformers' attention interface or by the attentions "
        "that they return. Refused:"
    )
    for kind, reason in REFUSED.items():
        console.say(f"  {kind}: {reason}")


def info(output: OutputOptions) -> None:
    """Print versions, processor and devices for bug reports."""
    import torch

    from headroles.models.loading.encoder import choose_device
    from headroles.record import versions

    gpus = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    machine: dict[str, dict[str, Any]] = {
        "versions": versions(),
        "processor": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        },
        "devices": {"GPUs": gpus or 0, "default": choose_device("auto").type},
    }
    if output.json:
        console.print_json(machine)
        return
    for name, value in machine.items():
        console.say(f"{name:11}" + ", ".join(f"{key} {part}" for key, part in value.items()))
