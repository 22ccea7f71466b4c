"""What devices compute with instructions of their own."""

from __future__ import annotations

import os
import platform

import torch

_AMPERE = (8, 0)
"""First compute capability of CUDA with products of bfloat16."""
_CAP = "ONEDNN_MAX_CPU_ISA"
_CAPPED = ("AVX512_CORE", "AVX512_CORE_VNNI")
"""Caps of oneDNN under which it takes products of bfloat16, but emulates them in float32."""


def multiplies_bfloat16(device: torch.device) -> bool:
    """Tell whether a device multiplies bfloat16 itself; others emulate it, which is slower.

    Processors need AVX512_BF16, which those with AMX have too, or the extension BF16 of ARM, and
    oneDNN must be allowed to use it (``ONEDNN_MAX_CPU_ISA``). GPUs of CUDA need compute capability
    8, and Apple's all qualify.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= _AMPERE
    return device.type == "mps" or (device.type == "cpu" and _processor_does())


def _processor_does() -> bool:
    if not onednn_takes_bfloat16():
        return False
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    has_instructions = bool(torch.cpu.get_capabilities().get("avx512_bf16", False))
    return has_instructions and os.environ.get(_CAP, "").upper() not in _CAPPED


def onednn_takes_bfloat16() -> bool:
    """Ask oneDNN, whose answer follows the cap; on x86 it is yes from AVX-512 on."""
    is_built_in: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return is_built_in and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
