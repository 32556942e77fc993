"""The listed distribution on a graphics card: the same hypothesis, for domains of up to 10^10 cells. Extra `gpu`.

Only the array of weights lies on the card. Answers, tables and steps are those of `Dense` to rounding; what is small
comes back as numpy arrays. Where there is no card, or no PyTorch, `listed` gives the ordinary one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.domain import Domain
from tacit.release.hypothesis.dense import MAX_CELLS, Array, Dense, Selection

_BLOCK = 2**20  # cells that rows are drawn from together
_ROOM = 0.8  # of the card's free memory, for the weights


def listed(domain: Domain) -> Dense:
    """The uniform distribution over X: in memory where X fits there, else on a card if there is one with room."""
    if MAX_CELLS < domain.size <= room():
        return GpuDense(domain)
    return Dense(domain)


def room() -> int:
    """How many cells a card of this machine has room for now; 0 where there is none."""
    try:
        import torch

        return int(torch.cuda.mem_get_info()[0] * _ROOM) // 8 if torch.cuda.is_available() else 0
    except Exception:  # whatever is missing or broken, the processor will do
        return 0


class GpuDense(Dense):
    """A distribution over X whose weights lie on a device that PyTorch knows. See `Dense`."""

    def __init__(self, domain: Domain, weights: ArrayLike | None = None, *, device: str = "cuda") -> None:
        self._device = device
        super().__init__(domain, weights)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Independent rows from the distribution: first the block that a row lies in, then its cell."""
        import torch

        flat = self._weights.reshape(-1)
        starts = range(0, self.domain.size, _BLOCK)
        ends = np.cumsum([float(flat[start : start + _BLOCK].sum()) for start in starts])
        places = rng.random(rows) * ends[-1]
        blocks = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
        cells = np.empty(rows, dtype=np.int64)
        for block in np.unique(blocks):
            mine = np.flatnonzero(blocks == block)
            sums = torch.cumsum(flat[block * _BLOCK : (block + 1) * _BLOCK], 0)
            within = torch.as_tensor(rng.random(len(mine)) * float(sums[-1]), device=self._device)
            found = torch.searchsorted(sums, within, right=True).cpu().numpy()
            cells[mine] = block * _BLOCK + np.minimum(found, len(sums) - 1)
        return list(np.unravel_index(cells, self.domain.shape))

    def _most_cells(self) -> int:
        return MAX_CELLS if self._device == "cpu" else room()

    def _hold(self, weights: ArrayLike | None) -> Any:
        import torch

        if weights is None:
            return torch.ones(self.domain.shape, dtype=torch.float64, device=self._device)
        return torch.tensor(np.asarray(weights, dtype=np.float64), device=self._device)

    def _summed(self, axes: tuple[int, ...]) -> Array:
        return _host(self._weights.sum(dim=axes) if axes else self._weights)

    def _masses(self, selection: Selection) -> Array:
        if selection.table is None:
            return np.array([sum(float(self._weights[self._place(piece)].sum()) for piece in selection.pieces)])
        axes = tuple(axis for axis, length in enumerate(selection.table.shape) if length == 1)
        sums = np.zeros(selection.table.shape)
        for piece in selection.pieces:
            part = self._weights[self._place(piece)]
            sums += _host(part.sum(dim=axes, keepdim=True) if axes else part)
        return sums.ravel()

    def _tilt(self, selection: Selection, tilt: float) -> None:
        import torch

        exponents = torch.tensor(tilt if selection.table is None else tilt * selection.table, dtype=torch.float64)
        factor = torch.exp(exponents).to(self._device)
        for piece in selection.pieces:
            self._weights[self._place(piece)] *= factor

    def _place(self, piece: tuple[slice | NDArray[np.intp], ...]) -> tuple[Any, ...]:
        import torch

        return tuple(
            part if isinstance(part, slice) else torch.as_tensor(np.asarray(part), device=self._device)
            for part in piece
        )


def _host(tensor: Any) -> Array:
    return np.asarray(tensor.cpu().numpy(), dtype=np.float64)
