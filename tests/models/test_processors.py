"""Which devices multiply bfloat16 themselves."""

from __future__ import annotations

import pytest
import torch

from headroles.models.processors import multiplies_bfloat16

CPU = torch.device("cpu")


def _processor(
    monkeypatch: pytest.MonkeyPatch, machine: str, has_instructions: bool, takes: bool = True
) -> None:
    here = "headroles.models.processors"
    monkeypatch.setattr(f"{here}.platform.machine", lambda: machine)
    monkeypatch.setattr(f"{here}.onednn_takes_bfloat16", lambda: takes)
    found = {"avx512_bf16": has_instructions}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)


@pytest.mark.parametrize("cap", ["", "ALL", "AVX512_CORE_BF16", "avx512_core_amx"])
def test_x86_needs_the_instructions(monkeypatch: pytest.MonkeyPatch, cap: str) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", cap)
    for has_instructions in (False, True):
        _processor(monkeypatch, "x86_64", has_instructions)
        assert multiplies_bfloat16(CPU) == has_instructions


@pytest.mark.parametrize("cap", ["AVX512_CORE", "avx512_core_vnni"])
def test_onednn_may_be_kept_from_them(monkeypatch: pytest.MonkeyPatch, cap: str) -> None:
    _processor(monkeypatch, "x86_64", has_instructions=True)
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", cap)
    assert not multiplies_bfloat16(CPU)


def test_onednn_has_to_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    _processor(monkeypatch, "x86_64", has_instructions=True, takes=False)
    assert not multiplies_bfloat16(CPU)


def test_of_arm_onednn_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    for takes in (False, True):
        _processor(monkeypatch, "aarch64", has_instructions=False, takes=takes)
        assert multiplies_bfloat16(CPU) == takes


def test_the_capability_is_one_that_torch_knows() -> None:
    assert "avx512_bf16" in torch.cpu.get_capabilities() or not torch.cpu._is_avx512_supported()


@pytest.mark.parametrize(("capability", "does"), [((7, 5), False), ((8, 0), True), ((9, 0), True)])
def test_gpus_from_ampere_on(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], does: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert multiplies_bfloat16(torch.device("cuda:0")) == does


def test_other_devices() -> None:
    assert multiplies_bfloat16(torch.device("mps"))
    assert not multiplies_bfloat16(torch.device("meta"))
