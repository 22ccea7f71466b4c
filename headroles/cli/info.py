"""``headroles info``: what a report of a bug needs to say about the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.flags import OutputOptions, command

_OPTIONAL = ("spacy", "accelerate", "datasets", "pandas", "pyarrow", "conllu", "typer", "msgspec")
_THREADS = (
    "OMP_NUM_THREADS",
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
)


@command(app)
def info(output: OutputOptions) -> None:
    """Print versions, processor and devices for bug reports."""
    found = describe_machine()
    if output.json:
        console.print_json(found)
        return
    for name, value in found.items():
        told = ", ".join(f"{key} {own}" for key, own in value.items()) if value else "none"
        console.say(f"{name:12}{told}")


def describe_machine() -> dict[str, dict[str, Any]]:
    """Versions of packages, the processor as torch uses it, its devices, encoder families."""
    import torch

    from headroles.models.families import FAMILIES
    from headroles.record import versions

    gpus = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    return {
        "versions": versions(),
        "others": {name: own for name in _OPTIONAL if (own := _version(name))},
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
        },
        "encoders": {"families": len(FAMILIES)},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
