"""Commands about headroles itself: encoder families and the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from headroles.cli import console
from headroles.cli.flags import OutputOptions

_OPTIONAL = ("spacy", "accelerate", "datasets", "conllu", "pandas", "pyarrow", "typer", "msgspec")
_THREADS = (
    "OMP_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
)


def models(output: OutputOptions) -> None:
    """List the encoder families. Those that cannot be scored come with the reason."""
    from headroles.models.families import FAMILIES, REFUSED
    from headroles.results.shown import Grid

    if output.json:
        supported = {
            kind: {"name": family.name, "read_through": family.read_through, "note": family.note}
            for kind, family in FAMILIES.items()
        }
        console.print_json({"supported": supported, "refused": REFUSED})
        return
    columns = ("family", "read through", "note")
    rows = tuple((family.name, family.read_through, family.note) for family in FAMILIES.values())
    console.print_shown(iter([Grid(columns, rows, left=frozenset(columns))]))
    console.say(
        "Other encoders, code from the hub included, are read through transformers' attention "
        "interface or by the attentions that they return. Refused:"
    )
    for kind, reason in REFUSED.items():
        console.say(f"  {kind}: {reason}")
    console.say("  decoders: headroles scores encoders, those of encoder-decoders included")


def info(output: OutputOptions) -> None:
    """Print versions, processor and devices for bug reports."""
    import torch

    from headroles.models.families import FAMILIES
    from headroles.models.loading.encoder import choose_device
    from headroles.record import versions

    device = choose_device("auto")
    gpus = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    machine: dict[str, dict[str, Any]] = {
        "versions": versions(),
        "others": {name: version(name) for name in _OPTIONAL if find_spec(name)},
        "processor": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "instructions": torch.backends.cpu.get_cpu_capability(),
        },
        "settings": {name: os.environ[name] for name in _THREADS if name in os.environ},
        "devices": {
            "cuda": torch.version.cuda or "not built in",
            "GPUs": gpus or 0,
            "mps": torch.backends.mps.is_available(),
            "default": device.type,
        },
        "encoders": {"families": len(FAMILIES)},
    }
    if output.json:
        console.print_json(machine)
        return
    for name, value in machine.items():
        text = ", ".join(f"{key} {part}" for key, part in value.items()) if value else "none"
        console.say(f"{name:12}{text}")
