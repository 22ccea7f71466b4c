"""Values that move between host and device do not change."""

from __future__ import annotations

import numpy as np
import torch

from headroles.passes.examples import to_host


def test_values_come_to_the_host_as_they_are() -> None:
    value = torch.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(to_host(value)(), value.numpy())
