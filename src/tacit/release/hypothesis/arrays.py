"""Where the numbers of a hypothesis lie: in memory (numpy), or on a graphics card (PyTorch, the extra `gpu`).

A hypothesis is written once. numpy and PyTorch have what it uses under the same names, and take `axis` and `keepdims`
alike; what they do not share is here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_ROOM = 0.8  # of the card's free memory, for the numbers


@dataclass(frozen=True)
class Device:
    """A module of arrays, `xp`, and the name of a device that it knows."""

    xp: Any = np
    name: str = "cpu"

    def hold(self, array: ArrayLike, dtype: str | None = None) -> Any:
        """A copy there."""
        copy = np.array(array, dtype=dtype, order="C")
        return self.xp.asarray(copy, device=self.name)

    def back(self, array: Any) -> NDArray[Any]:
        """The same numbers in memory."""
        return np.asarray(array if self.xp is np else array.cpu().numpy())


MEMORY = Device()


def torch_device(name: str = "cuda") -> Device:
    """A device that PyTorch knows."""
    import torch

    return Device(torch, name)


def room() -> int:
    """For how many numbers in double precision a card of this machine has room now; 0 where there is none."""
    try:
        import torch

        return int(torch.cuda.mem_get_info()[0] * _ROOM) // 8 if torch.cuda.is_available() else 0
    except Exception:  # whatever is missing or broken, the processor will do
        return 0
