"""AIM or MST over `mbi`, as a program of its own: run by `synthesis`, in an environment that has `mbi` and not Tacit.

    python synthesis_program.py AIM table.npz model.npz RHO

The program reads columns of codes and their sizes, spends RHO (zCDP, one row replaced, the number of rows public), and
writes the model: its whole distribution where that can be listed, else its tables of the scopes that were asked for
and made-up rows. Both methods are written from their papers over mbi's own estimator; what they measure is Gaussian,
and what they choose is chosen by the exponential mechanism. A replaced row moves a table by sqrt(2) in L2 and the L1
distance of a table to the model by 2.

AIM (McKenna, Mullins, Sheldon & Miklau 2022) has its budget for 16 rounds an attribute and models of 80 MB. That takes
hours: here it has ROUNDS an attribute after the single ones, and models of at most MEGABYTES. MST (McKenna, Miklau &
Sheldon 2021) measures a spanning tree of pairs; its merging of rare values is left out, as domains here are public and
small.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from itertools import combinations
from typing import Any

import jax

jax.config.update("jax_enable_x64", True)

import mbi  # noqa: E402
import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402
from mbi.estimation import MirrorDescent  # noqa: E402
from mbi.junction_tree import hypothetical_model_size  # noqa: E402

SINGLES = 0.1  # of AIM's budget, for single attributes; in the paper 0.06
ROUNDS = 4  # of AIM, for each attribute, at most; halving the noise makes them fewer
MEGABYTES = 2.0  # of AIM's junction tree, when all of the budget is spent
STEPS, LAST_STEPS = 500, 2_000  # of mirror descent, after each measurement and at the end
MOST_CELLS = 2**24  # of a distribution that is listed
MADE_UP = 10  # rows made up for each row of the table, where it is not
EXPECTED = math.sqrt(2 / math.pi)  # of the size of a standard normal number

Scope = tuple[str, ...]
rng = np.random.default_rng()


class Model:
    """The tables measured so far, the distribution that fits them, and the budget that is left."""

    def __init__(self, columns: dict[str, Any], sizes: dict[str, int], rho: float) -> None:
        self.domain = mbi.Domain(tuple(sizes), tuple(sizes.values()))
        self.columns, self.rows = columns, len(next(iter(columns.values())))
        self.rho = self.left = rho
        self.measured: list[Any] = []
        self.fitted: Any = None
        self._joint: Any = None

    def true(self, scope: Scope) -> Any:
        shape = [self.domain[name] for name in scope]
        places = np.ravel_multi_index([self.columns[name] for name in scope], shape)
        return np.bincount(places, minlength=math.prod(shape)).reshape(shape)

    def guess(self, scope: Scope) -> Any:
        if self._joint is None:
            return np.asarray(self.fitted.project(scope).datavector(flatten=False))
        names = list(self.domain)
        others = tuple(place for place, name in enumerate(names) if name not in scope)
        kept = [name for name in names if name in scope]
        return self._joint.sum(axis=others).transpose([kept.index(name) for name in scope])

    def measure(self, scope: Scope, sigma: float) -> None:
        """Costs 1 / (2 sigma^2), so the noise is sqrt(2) sigma."""
        self.left -= 0.5 / sigma**2
        deviation = math.sqrt(2) * sigma
        noisy = self.true(scope) + rng.normal(0, deviation, [self.domain[name] for name in scope])
        self.measured.append(mbi.LinearMeasurement(noisy.ravel(), scope, stddev=deviation))

    def choose(self, scores: dict[Any, float], epsilon: float, sensitivity: float) -> Any:
        """The exponential mechanism, which costs epsilon^2 / 8."""
        self.left -= epsilon**2 / 8
        noisy = {one: epsilon * score / (2 * sensitivity) + rng.gumbel() for one, score in scores.items()}
        return max(noisy, key=noisy.__getitem__)

    def fit(self, steps: int = STEPS) -> None:
        self.fitted = MirrorDescent().estimate(
            self.domain, self.measured, known_total=self.rows, iters=steps, warm_start=self.fitted
        )
        if self.domain.size() <= MOST_CELLS:
            self._joint = self._listed()

    def _listed(self) -> Any:
        names = list(self.domain)
        logs = np.zeros([self.domain[name] for name in names])
        for scope in self.fitted.potentials.cliques:
            factor = self.fitted.potentials[scope]
            ordered = factor.transpose([name for name in names if name in factor.domain])
            shape = [self.domain[name] if name in factor.domain else 1 for name in names]
            logs += np.asarray(ordered.datavector(flatten=False)).reshape(shape)
        joint = np.exp(logs - logs.max())
        return joint * (self.rows / joint.sum())

    def write(self, target: str, told: dict[str, Any], scopes: list[Scope]) -> None:
        if self._joint is not None:
            found = {"joint": self._joint.astype(np.float32)}
        else:
            found = {"|".join(scope): self.guess(scope) for scope in scopes}
            made_up = self.fitted.synthetic_data(rows=MADE_UP * self.rows).to_dict()
            found |= {f"made up {name}": np.asarray(column) for name, column in made_up.items()}
        np.savez(target, told=np.array(json.dumps(told)), **found)


def mst(model: Model) -> None:
    third, names = model.rho / 3, list(model.domain)
    for name in names:
        model.measure((name,), math.sqrt(len(names) / (2 * third)))
    model.fit()
    distances = {}
    for pair in combinations(names, 2):
        distances[pair] = float(np.abs(model.true(pair) - model.guess(pair)).sum())
    epsilon = math.sqrt(8 * third / (len(names) - 1))
    tree = nx.Graph()
    tree.add_nodes_from(names)
    while tree.number_of_edges() < len(names) - 1:
        part = {name: place for place, nodes in enumerate(nx.connected_components(tree)) for name in nodes}
        tree.add_edge(*model.choose({p: d for p, d in distances.items() if part[p[0]] != part[p[1]]}, epsilon, 2.0))
    for pair in tree.edges:
        model.measure(tuple(pair), math.sqrt((len(names) - 1) / (2 * third)))
    model.fit(LAST_STEPS)


def aim(model: Model, workload: list[Scope]) -> None:
    names = list(model.domain)
    rounds = ROUNDS * len(names)
    for name in names:
        model.measure((name,), math.sqrt(len(names) / (2 * SINGLES * model.rho)))
    model.fit()
    sigma, epsilon = math.sqrt(rounds / (2 * 0.9 * model.left)), math.sqrt(8 * 0.1 * model.left / rounds)
    closure = {scope for told in workload for size in range(1, len(told) + 1) for scope in combinations(told, size)}
    weights = {scope: sum(len(set(scope) & set(told)) for told in workload) for scope in closure}
    true = {scope: model.true(scope) for scope in closure}
    small = model.domain.size() * 8 / 2**20 <= MEGABYTES  # then no model is too large
    done = False
    while not done:
        if model.left < 2 * (0.5 / sigma**2 + epsilon**2 / 8):  # the rest is the last round's
            sigma, epsilon = math.sqrt(1 / (2 * 0.9 * model.left)), math.sqrt(8 * 0.1 * model.left)
            done = True
        bias = EXPECTED * math.sqrt(2) * sigma
        room = MEGABYTES * (1 - model.left / model.rho)
        cliques = [measured.clique for measured in model.measured]
        free = {
            scope for clique in cliques for size in range(1, len(clique) + 1) for scope in combinations(clique, size)
        }
        scores, weighed = {}, 0.0
        for scope in sorted(closure):
            if scope in free or small or hypothetical_model_size(model.domain, [*cliques, scope]) <= room:
                distance = np.abs(true[scope] - model.guess(scope)).sum() - bias * true[scope].size
                scores[scope] = weights[scope] * float(distance)
                weighed = max(weighed, weights[scope])
        chosen = model.choose(scores, epsilon, 2.0 * weighed)
        before = model.guess(chosen)
        model.measure(chosen, sigma)
        model.fit(LAST_STEPS if done else STEPS)
        # where a table taught less than its noise, the next ones are bought with less noise
        if np.abs(model.guess(chosen) - before).sum() <= bias * before.size:
            sigma, epsilon = sigma / 2, epsilon * 2
        print(f"{len(model.measured):3} {'|'.join(chosen):<40} {model.left / model.rho:.3f} left", flush=True)


def main(method: str, source: str, target: str, rho: float) -> None:
    with np.load(source) as given:
        sizes = json.loads(str(given["sizes"]))
        workload = [tuple(names) for names in json.loads(str(given["workload"]))]
        columns = {name: given[f"column {name}"].astype(np.int64) for name in sizes}
    start = time.perf_counter()
    model = Model(columns, sizes, rho)
    mst(model) if method == "MST" else aim(model, workload)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "seconds": time.perf_counter() - start,
        "processor": used.ru_utime + used.ru_stime,
        "gigabytes": used.ru_maxrss / 2**20,
        "measured": ["|".join(measured.clique) for measured in model.measured],
    }
    model.write(target, told, workload)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
