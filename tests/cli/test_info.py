"""``headroles info``."""

from __future__ import annotations

import json
from importlib.metadata import version

import torch

from tests.commands import run


def test_versions_processor_and_devices() -> None:
    shown = json.loads(run("info", "--json").stdout)
    assert shown["versions"]["torch"] == version("torch")  # of the build for CUDA without "+cu"
    assert shown["processor"]["instructions"] == torch.backends.cpu.get_cpu_capability()
    assert shown["devices"]["default"] in ("cpu", "cuda", "mps")
    assert shown["encoders"]["families"] > 30


def test_settings_that_change_sums_are_said(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    shown = run("info").stdout
    assert "ATEN_CPU_CAPABILITY avx2" in shown
