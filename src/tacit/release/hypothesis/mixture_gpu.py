"""The mixture's fit on a graphics card: the same objective and the same steps, for many values or components.

For `fit_mixture` only; needs PyTorch (extra `gpu`). Single precision and another order of sums: the minimum that is
found fits as well as the processor's, and its last digits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tacit.release.hypothesis.fit_mixture import Problem

Single = NDArray[np.float32]


class OnCard:
    """The objective of a fit, and its gradient, on a device that PyTorch knows."""

    def __init__(self, problem: Problem, device: str = "cuda") -> None:
        import torch

        def held(array: Any, dtype: Any = torch.float32) -> Any:
            return torch.as_tensor(np.ascontiguousarray(array), dtype=dtype, device=device)

        self._torch, self._problem, self._held = torch, problem, held
        ones, rest = np.diag(problem.precision), problem.precision.copy()
        np.fill_diagonal(rest, 0)
        self._shares, self._rest = held(problem.shares), held(rest)
        self._own, self._ones, self._start = held(np.diag(problem.shares)), held(ones), held(problem.start)
        self._groups = [(b, held(g, torch.int64), held(t), sure) for b, g, t, sure in problem.groups]
        self._tables = [(blocks, held(table), sure) for blocks, table, sure in problem.tables]
        self._singles = [([(b, held(w)) for b, w in parts], share, sure) for parts, share, sure in problem.singles]

    def objective(self, logits: Any, log_weights: Any) -> Any:
        """Half the misfit plus the pull: what `fit_mixture` minimises."""
        torch, blocks = self._torch, self._problem.blocks
        laws = torch.cat([torch.softmax(logits[:, block], dim=1) for block in blocks], dim=1)
        weights = torch.softmax(log_weights, dim=0)
        marginals = weights @ laws
        pairs = (laws * weights[:, None]).T @ laws - self._shares
        found = (self._rest * pairs**2).sum() / 4 + (self._ones * (marginals - self._own) ** 2).sum() / 2
        for block, groups, table, sure in self._groups:
            sums = torch.zeros_like(table).index_add(0, groups, marginals[block])
            found = found + sure * ((sums - table) ** 2).sum() / 2
        for scope, table, sure in self._tables:
            joint = self._products([laws[:, block] for block in scope[:-1]]) * weights[:, None]
            found = found + sure * ((joint.T @ laws[:, scope[-1]]).reshape(table.shape) - table).square().sum() / 2
        for parts, share, sure in self._singles:
            means = weights
            for scope, table in parts:
                means = means * (self._products([laws[:, block] for block in scope]) @ table.reshape(-1))
            found = found + sure * (means.sum() - share) ** 2 / 2
        surprise = (laws * (torch.log(laws.clamp_min(1e-30)) - self._start)).sum(dim=1)
        return found + self._problem.pull * (weights * surprise).sum()

    def slopes(self, logits: Single, log_weights: Single) -> tuple[Single, Single]:
        """The gradient, as `Problem.slopes` gives it."""
        places = [self._held(one).requires_grad_() for one in (logits, log_weights)]
        found = self._torch.autograd.grad(self.objective(*places), places)
        return found[0].cpu().numpy(), found[1].cpu().numpy()

    def descend(
        self,
        values: tuple[Single, Single],
        sizes: list[float],
        memory: tuple[float, float],
        progress: Callable[[int], None],
    ) -> tuple[Single, Single]:
        """So many steps of Adam, of these sizes, from these logarithms; where they lead."""
        torch, (first, second) = self._torch, memory
        places = [self._held(one).requires_grad_() for one in values]
        means, squares = ([torch.zeros_like(place) for place in places] for _ in range(2))
        for step, size in enumerate(sizes, 1):
            slopes = torch.autograd.grad(self.objective(*places), places)
            with torch.no_grad():
                for place, slope, mean, square in zip(places, slopes, means, squares, strict=True):
                    mean.lerp_(slope, 1 - first)
                    square.lerp_(slope * slope, 1 - second)
                    spread = (square / (1 - second**step)).sqrt() + 1e-12
                    place -= size / (1 - first**step) * mean / spread
            progress(step)
        return places[0].detach().cpu().numpy(), places[1].detach().cpu().numpy()

    def _products(self, laws: list[Any]) -> Any:
        rows = laws[0]
        for law in laws[1:]:
            rows = (rows[:, :, None] * law[:, None, :]).reshape(len(rows), -1)
        return rows
