"""A good public guess before the first question: one noisy release of tables, and the distribution that fits it.

This is the offline construction (Roth, lecture 8) over whole tables. What it buys is marked as bought for the start, so
that `recalled` finds the same start again, to the last bit, by reading what was released: nothing is chosen again then.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExhausted, InvalidBudget, InvalidDomain, TacitError
from tacit.model.budget import Loss, percent_of
from tacit.model.domain import Domain
from tacit.model.entry import Measured, Start, Told
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import Marginal, Tree, leaves
from tacit.release.allocation import allocation
from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS, Dense
from tacit.release.hypothesis.fit import Fitted, StepProgress, fit
from tacit.release.hypothesis.fit_mixture import FittedMixture, fit_mixture
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.hypothesis.prior import Prior
from tacit.release.public import Public
from tacit.release.ranges.choice import two_levels
from tacit.release.recall import buyer, expected_noise
from tacit.store.chain import digest

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

# A fit that is made otherwise needs another name: what was certified of this one is not its.
FIT, FIT_OF_PAIRS, FIT_OF_TRIPLES = "interactions 2", "mixture 4", "mixture 5"
AnyFit = Fitted | FittedMixture
MOST_KEPT_CELLS = 2**22  # cells of a distribution that is kept: above that its file would be larger than it is worth
Wanted = Residuals | Marginal | Tree


@dataclass(frozen=True, eq=False)
class WarmStart:
    """What was measured, and what fits it. `bought` is what it cost in all, whenever it was paid."""

    fitted: AnyFit
    measured: tuple[Measured, ...]
    bought: Loss
    prior: Prior | None = None

    @property
    def name(self) -> str:
        """Which guess it is: what this fit makes of these releases, and of the prior where there is one."""
        return fit_name(self.measured, self.prior, mixture=isinstance(self.fitted, FittedMixture))

    @property
    def hypothesis(self) -> Dense | Mixture:
        return self.fitted.hypothesis


def warm_start(
    public: Public, curator: Curator | None, *, loss: Loss, progress: StepProgress | None = None
) -> WarmStart:
    """Buy what `wanted` says for at most `loss` in all, and fit it."""
    if public.domain.size > MAX_LISTED_CELLS:
        Mixture.uniform(public.domain)  # refuses a domain too wide for it, before anything is paid
    if loss.measure != public.total.measure or loss.atoms <= 0:
        raise InvalidBudget(f"a warm start costs some {public.total.measure}, not {loss}.")
    _buy(public, curator, wanted(public, loss))
    found = recalled(public, progress=progress)  # so it is the same start here and wherever it is recalled
    assert found is not None
    return found


def recalled(public: Public, *, progress: StepProgress | None = None) -> WarmStart | None:
    """The start that was bought, folded from what was released; None where there is none, or only a part of one."""
    begun = begun_with(public)
    if begun is None or begun.left:
        return None
    fitted = kept_fit(
        public,
        "base",
        begun.name(public),
        lambda: fit_all(public.domain, begun.measured, public.rows, prior=public.prior, progress=progress),
    )
    bought = Loss(public.total.measure, sum(one.cost.atoms for one in begun.measured))
    return WarmStart(fitted, begun.measured, bought, public.prior)


class Begun(NamedTuple):
    """What was bought of a start, in the order of a fit; how many purchases are still to come; the first one's entry.

    Tables that were bought before it are among what was measured.
    """

    measured: tuple[Measured, ...]
    left: int
    first: int

    def name(self, public: Public) -> str:
        """Which guess it is, once it is whole."""
        return fit_name(self.measured, public.prior, mixture=public.domain.size > MAX_LISTED_CELLS)


def begun_with(public: Public) -> Begun | None:
    """What was bought of a start, by its marks; None where none was begun."""
    released = {one.receipt.entry: one for one in public.released()}
    marks = [(one.start, one) for one in released.values() if one.start is not None]
    if not marks:
        return None
    # Whoever goes on with a start that was cut short may name a table of others once more: it counts once.
    named = dict.fromkeys(entry for mark, _ in marks for entry in mark.beside if entry in released)
    together = sorted([*(released[entry] for entry in named), *(one for _, one in marks)], key=_place)
    return Begun(tuple(together), marks[-1][0].left, marks[0][1].receipt.entry)


def still_to_buy(public: Public, loss: Loss) -> Loss:
    """What of a start for this loss was not bought yet, and would cost."""
    asked = wanted(public, loss)
    new = _new(public.find([question for question, _ in asked]))
    return Loss(loss.measure, sum(price.atoms for (_, price), buys in zip(asked, new, strict=True) if buys))


def kept_fit(public: Public, kind: str, name: str, fit: Callable[[], AnyFit]) -> AnyFit:
    """A fit that was made before, read back where it is kept under this name; else made, and kept.

    The name has the seals of all that it was fitted to, so that one of other releases is never taken for it.
    """
    content = None if public.shelf is None else public.shelf.get(kind, name)
    found = None if content is None else unpacked(content, public.domain, mixture=public.domain.size > MAX_LISTED_CELLS)
    if found is not None:
        return found
    made = fit()
    content = None if public.shelf is None else packed(made)
    if public.shelf is not None and content is not None:
        public.shelf.put(kind, name, content)
    return made


def fit_name(measured: Sequence[Measured], prior: Prior | None, *, mixture: bool) -> str:
    """Which fit it is: the way of fitting, the prior and the seals of what it is fitted to, in order."""
    drawn_to = [] if prior is None else [prior.digest]
    way = (FIT_OF_TRIPLES if any(map(_has_triples, measured)) else FIT_OF_PAIRS) if mixture else FIT
    return digest([way, *drawn_to, *(one.receipt.seal for one in measured)])


def _has_triples(one: Measured) -> bool:
    """Whether a mixture is fitted to interactions of three attributes, or more, of this release."""
    if isinstance(one.question, Residuals):
        return max(map(len, one.question.scopes)) > 2
    return isinstance(one.question, Marginal) and len(one.question.names) > 2 and one.question.where.is_everyone


def fit_all(
    domain: Domain,
    measured: Sequence[Measured],
    rows: int,
    *,
    prior: Prior | None = None,
    before: AnyFit | None = None,
    sweeps: int | None = None,
    progress: StepProgress | None = None,
) -> AnyFit:
    """Fit everything measured: over all cells of X where they can be listed, else by a mixture of products."""
    if domain.size > MAX_LISTED_CELLS:
        earlier = before if isinstance(before, FittedMixture) else None
        return fit_mixture(domain, measured, rows, prior=prior, before=earlier, progress=progress)
    listed, most = before if isinstance(before, Fitted) else None, {} if sweeps is None else {"sweeps": sweeps}
    return fit(domain, measured, rows, prior=prior, before=listed, progress=progress, **most)


def wanted(public: Public, loss: Loss) -> list[tuple[Wanted, Loss]]:
    """What a start for this loss measures, and what each part of it costs; from what is public.

    With delta > 0 one release of all interactions that are worth it. In pure epsilon, where a row moves all the numbers
    of an interaction a little, tables. Of an ordered attribute with very many bins a tree of two levels beside it: see
    `ranges.choice.two_levels`.
    """
    domain, people = public.domain, public.rows_per_person
    plan = allocation(domain, public.rows)
    if not plan.scopes:
        raise InvalidDomain("no attribute has two values or more, so there is nothing to start from.")
    alone = [scope[0] for scope in plan.scopes if len(scope) == 1]
    trees = {name: tree for name in alone if (tree := _tree(domain, name, loss)) is not None}
    found = list[tuple[Wanted, Loss]]()
    if loss.measure == "epsilon":
        for names, share in plan.tables(float(loss) / people).items():
            tree = trees.get(names[0]) if len(names) == 1 else None
            found.append((tree or Marginal(names, Query.constant(everyone=True)), _part(loss, share)))
    else:
        rho = float(loss) / people**2
        # A tree costs as much as its attribute does among the interactions; both give way to each other.
        shares = {name: plan.share((name,), rho) for name in trees}
        whole = 1 + sum(shares.values())
        found.append((plan.question(rho), _part(loss, 1 / whole)))
        found += [(trees[name], _part(loss, share / whole)) for name, share in shares.items()]
    return [(asked, price) for asked, price in found if price.atoms]  # what would get nothing is left out


def mean_size(noise: Noise) -> float:
    """E|Z|, nearly: of the laws with these scales over all numbers."""
    return noise.scale if noise.kind == "laplace" else noise.scale * math.sqrt(2 / math.pi)


def _place(one: Measured) -> tuple[int, tuple[str, ...], str]:
    question = one.question
    names = question.names if isinstance(question, Marginal | Residuals) else (question.name,)  # type: ignore[union-attr]
    return len(names), names, one.key


def _tree(domain: Domain, name: str, loss: Loss) -> Tree | None:
    attribute = domain[name]
    if not attribute.ordered or leaves(attribute) != attribute.size:
        return None
    return two_levels(name, attribute.size, loss.measure)


def _part(loss: Loss, share: float) -> Loss:
    return Loss(loss.measure, int(loss.atoms * share * (1 - 1e-9)))


def _buy(public: Public, curator: Curator | None, asked: Sequence[tuple[Wanted, Loss]]) -> None:
    """All of them or none: what cannot be paid for is refused before anything is."""
    for question, price in asked:
        expected_noise(public, question, price)
    known = public.find([question for question, _ in asked])
    others, new = [_is_other(one) for one in known], _new(known)
    if sum(price.atoms for (_, price), buys in zip(asked, new, strict=True) if buys) > public.left.atoms:
        share = percent_of(public.left, public.whole)
        raise BudgetExhausted(f"this warm start costs more than the {share} that are left.")
    # The first new purchase names those of others that the start begins with; all of them count down to the last.
    beside = tuple(
        one.receipt.entry
        for one, theirs, buys in zip(known, others, new, strict=True)
        if theirs and not buys and isinstance(one, Measured)
    )
    left, seller = new.count(True), buyer(public, curator)
    for (question, price), found, buys in zip(asked, known, new, strict=True):
        if buys:
            left -= 1
            seller.measure([question], price, start=Start(left, beside), anew=found is not None)
            beside = ()


def _new(known: Sequence[Measured | Told | None]) -> list[bool]:
    """Which purchases of a start are still to be made, by what is known of each."""
    new, others = [found is None for found in known], [_is_other(one) for one in known]
    if not any(new) and any(others):
        new[others.index(True)] = True  # all of it is there: one is measured anew, to carry the mark
    return new


def _is_other(one: Measured | Told | None) -> bool:
    """Whether it was bought by itself, and not for the start."""
    return isinstance(one, Measured) and one.start is None


# -- a fit as bytes and back, to the last bit: so that another process need not fit the same releases again ------------


def packed(fitted: AnyFit) -> bytes | None:
    """All of a fit; None where that is too much."""
    if isinstance(fitted, FittedMixture):
        arrays: list[NDArray[Any]] = [fitted.logits, fitted.log_weights, *fitted.hypothesis.arrays()]
        return _written({"misfit": fitted.misfit, "numbers": fitted.numbers}, arrays)
    if fitted.hypothesis.domain.size > MOST_KEPT_CELLS:
        return None
    facts = {
        "misfit": fitted.misfit,
        "sweeps": fitted.sweeps,
        "moving": fitted.moving,
        "pulls": list(fitted.pulls.items()),
        "tilts": list(fitted.tilts),
        "term_tilts": list(fitted.term_tilts),
    }
    return _written(facts, [fitted.hypothesis.weights, *fitted.tilts.values(), *fitted.term_tilts.values()])


def unpacked(content: bytes, domain: Domain, *, mixture: bool) -> AnyFit | None:
    """The fit that was packed; None where the bytes are no such thing for this domain."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            facts = json.loads(bytes(file["facts"]))
            arrays = [file[f"array{i}"] for i in range(len(file.files) - 1)]
        return _mixture(facts, arrays, domain) if mixture else _listed(facts, arrays, domain)
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, BadZipFile, TacitError):
        return None


def _written(facts: Mapping[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    said = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, facts=said, **{f"array{i}": one for i, one in enumerate(arrays)})
    return buffer.getvalue()


def _mixture(facts: Mapping[str, Any], arrays: list[NDArray[Any]], domain: Domain) -> FittedMixture:
    logits, log_weights, weights, *laws = arrays
    return FittedMixture(Mixture(domain, weights, laws), facts["misfit"], facts["numbers"], logits, log_weights)


def _listed(facts: Mapping[str, Any], arrays: list[NDArray[Any]], domain: Domain) -> Fitted:
    cells, *tilts = arrays
    axes = [tuple(one) for one in facts["tilts"]]
    return Fitted(
        hypothesis=Dense(domain, cells),
        pulls={tuple(one): pull for one, pull in facts["pulls"]},
        misfit=facts["misfit"],
        sweeps=facts["sweeps"],
        moving=facts["moving"],
        tilts=dict(zip(axes, tilts[: len(axes)], strict=True)),
        term_tilts=dict(zip(facts["term_tilts"], tilts[len(axes) :], strict=True)),
    )
