"""Bars of sums over blocks: exact laws of sums of noise, by convolution, and what the union bound leaves."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from tacit.model.attribute import integer
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.expression import Among
from tacit.model.facts import ANSWER, EXACT, NOISE, Bar, Facts, Receipt
from tacit.model.noise_law import Noise, pmf
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.block_parts import BlockTerms, Blockwise, in_steps, paid, summed
from tacit.release.estimate import Ceiling, Centre, Estimate, TableEstimate
from tacit.release.groups import BlockGroup, Taken
from tacit.release.noise_sum import Draws, width_of_all

CONFIDENCE = 0.95
FREE = Loss("gdp", 0)


def law_of(parts: list[tuple[Noise, int]]) -> np.ndarray:
    """The exact law of Σ weight * draw, one draw each, with whole weights, around its middle."""
    laws = []
    for noise, weight in parts:
        reach = int(40 * noise.scale) + 5
        law = np.zeros(2 * reach * weight + 1)
        law[::weight] = pmf(noise, np.arange(-reach, reach + 1))
        laws.append(law)
    return reduce(np.convolve, laws)


def within(law: np.ndarray, width: float) -> float:
    middle = len(law) // 2
    h = min(int(width), middle)
    return float(law[middle - h : middle + h + 1].sum())


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("scales", [[3.0] * 2, [3.0] * 12, [2.0, 5.0, 9.0], [1.5] * 5 + [6.0]])
@pytest.mark.parametrize("weights", [[1], [1, 3]])
def test_a_sum_stays_within_its_bar(kind: str, scales: list[float], weights: list[int]) -> None:
    noises = [Noise(kind, scale) for scale in scales]  # type: ignore[arg-type]
    parts = [(noise, weights[i % len(weights)]) for i, noise in enumerate(noises)]
    width = width_of_all([Draws(noise).times(weight) for noise, weight in parts], CONFIDENCE)
    law = law_of(parts)
    assert within(law, width) >= CONFIDENCE
    alike = len(set(scales)) == 1 or kind == "gaussian"  # Laplace draws all count as the widest
    assert not alike or within(law, 0.5 * width) < CONFIDENCE  # a bar of half the width is caught
    # Like independent errors: a good deal less than what single bars add up to, where there are many alike.
    alone = sum(width_of_all([Draws(noise).times(weight)], CONFIDENCE) for noise, weight in parts)
    assert len(scales) < 12 or width < 0.45 * alone


def test_noise_of_both_kinds_has_half_of_what_may_go_wrong_each() -> None:
    mixed = [Draws(Noise("laplace", 4.0)), Draws(Noise("gaussian", 4.0))]
    law = law_of([(part.noise, 1) for part in mixed])
    assert within(law, width_of_all(mixed, CONFIDENCE)) >= CONFIDENCE


def block(value: int, *, centre: int | None = None, ceiling: float | None = None, bar: Bar | None = None) -> Estimate:
    facts = Facts("hypothesis", FREE, CONFIDENCE, Receipt(1, "seal"), bars=() if bar is None else (bar,))
    noise = Draws(Noise("gaussian", 10.0))
    return Estimate(
        value,
        facts,
        None if centre is None else Centre(centre, noise),
        None if ceiling is None else Ceiling(ceiling, noise, 7),
    )


def test_the_bar_of_a_sum_of_centres_grows_with_the_root() -> None:
    bar = Bar(20, NOISE, CONFIDENCE)
    four, sixteen = (summed([block(100, centre=100, bar=bar)] * many, CONFIDENCE) for many in (4, 16))
    assert four.value == 400
    assert sixteen.value == 1600
    assert 1.9 < sixteen.facts.bars[0].width / four.facts.bars[0].width < 2.1
    assert four.facts.bars[0] == Bar(four.facts.bars[0].width, NOISE, CONFIDENCE)
    assert four.facts.receipt is None  # there are four ledgers


def test_how_far_the_shown_sum_is_from_the_centres_is_in_the_bar() -> None:
    plain = summed([block(100, centre=100)] * 4, CONFIDENCE).facts.bars[0].width
    biased = summed([block(100, centre=107)] * 4, CONFIDENCE).facts.bars[0].width
    assert biased == plain + 28


def test_certified_errors_add_linearly_and_their_noise_does_not() -> None:
    """On the exact law: each true error is `least` less its draw, so the sum is beyond the bar on one side alone."""
    many = 9
    bar = summed([block(100, ceiling=50.0)] * many, CONFIDENCE).facts.bars[0]
    beyond = bar.width - many * 50
    law = law_of([(Noise("gaussian", 10.0), 1)] * many)
    middle = len(law) // 2
    assert law[: middle - int(beyond)].sum() <= 1 - CONFIDENCE
    assert law[: middle - int(0.6 * beyond)].sum() > 1 - CONFIDENCE  # a narrower one is caught
    assert bar.about.words == "all 63 questions of this kind at once"
    assert beyond < many * 10  # which linear bars would be


def test_where_both_bars_are_proved_what_may_go_wrong_is_parted() -> None:
    both = summed([block(100, centre=100, ceiling=50.0)] * 4, CONFIDENCE).facts.bars
    alone = summed([block(100, centre=100)] * 4, CONFIDENCE).facts.bars
    assert [bar.about for bar in both][:1] == [NOISE]
    assert both[0].width > alone[0].width
    assert all(bar.confidence == CONFIDENCE for bar in both)


def test_other_bars_add_linearly_and_lose_confidence() -> None:
    bars = summed([block(10, bar=Bar(5, ANSWER, CONFIDENCE))] * 3, CONFIDENCE).facts.bars
    assert bars == (Bar(15, ANSWER, 0.85),)
    assert summed([block(10, bar=Bar(5, ANSWER, CONFIDENCE))] * 20, CONFIDENCE).facts.bars == ()
    assert summed([block(10), block(10, bar=Bar(5, ANSWER, CONFIDENCE))], CONFIDENCE).facts.bars == ()
    mixed = summed([block(10, centre=10), block(10, bar=Bar(5, ANSWER, CONFIDENCE))], CONFIDENCE).facts.bars
    assert mixed[0].confidence == 0.85  # both blocks and the sum of centres: who has a centre may follow from a gate


def test_one_noisy_block_keeps_its_bars_and_its_receipt() -> None:
    exact = Estimate(500, Facts("public", FREE, CONFIDENCE).within(0, EXACT))
    found = summed([exact, block(10, bar=Bar(5, ANSWER, CONFIDENCE)), exact], CONFIDENCE)
    assert found.value == 1010
    assert found.facts.bars == (Bar(5, ANSWER, CONFIDENCE),)
    assert found.facts.receipt == Receipt(1, "seal")
    assert summed([exact, exact], CONFIDENCE).facts.bars == (Bar(0, EXACT, CONFIDENCE),)


def test_a_finer_grid_scales_everything() -> None:
    found = in_steps(block(10, centre=12, ceiling=3.0, bar=Bar(5, ANSWER, CONFIDENCE)), 4)
    assert found.value == 40
    assert found.centre is not None
    assert found.centre.value == 48
    assert found.centre.draws.squares == 16
    assert found.ceiling is not None
    assert found.ceiling.least == 12
    assert found.facts.bars[0].width == 20


def test_what_is_taken_off_a_sum_is_as_unsure_as_what_is_added() -> None:
    """A group without its first block: the bars are those of two blocks that are added, around the difference."""
    for parts in ({"centre": 40}, {"ceiling": 9.0}, {"bar": Bar(12, ANSWER, CONFIDENCE)}):
        one, other = block(90, **parts), block(40, **parts)  # type: ignore[arg-type]
        if one.centre is not None:
            one = replace(one, centre=one.centre._replace(value=90))
        added, less = summed([one, other], CONFIDENCE), summed([one, in_steps(other, -1)], CONFIDENCE)
        assert (added.value, less.value) == (130, 50)
        assert less.facts.bars == added.facts.bars
        assert added.facts.width is not None
        assert added.facts.width > 0


def test_a_row_pays_in_one_ledger_of_each_level() -> None:
    costs = [Facts("measured", Loss("gdp", atoms), CONFIDENCE) for atoms in (3, 5, 7, 11)]
    assert paid(costs).atoms == 11
    assert paid(costs, [0, 0, 1, 1]).atoms == 5 + 11
    assert paid(costs, [0, 1, 2, 2]).atoms == 3 + 5 + 11


@pytest.mark.parametrize("names", [("stay",), ("block", "stay")])
def test_a_table_costs_what_the_ledgers_of_a_row_were_charged_for_all_its_cells(names: tuple[str, ...]) -> None:
    """Cells that are bought one by one add up within a ledger; of the ledgers of a level one has a row."""
    groups = [BlockGroup(0, place) for place in range(2)]
    terms = BlockTerms(
        name="block",
        domain=Domain({"stay": integer(0, 2)}),
        sizes=[10, 20],
        learns=True,
        confidence=CONFIDENCE,
        free=FREE,
        rows=lambda group: [10, 20][group.place],
        cover=lambda first, end: [Taken(group, 1) for group in groups[first:end]],
    )
    need = Marginal(names, Query.constant(everyone=True))
    blockwise = Blockwise([need], terms, lambda query: Estimate(0, Facts("repeat", FREE, CONFIDENCE)))
    prices = {groups[0]: [5, 0, 7], groups[1]: [0, 0, 9]}
    told = {
        group: {
            cell: Estimate(4, Facts("measured", Loss("gdp", atoms), CONFIDENCE))
            for cell, atoms in zip(cells, prices[group], strict=True)
        }
        for group, cells in blockwise.asked().items()
    }
    table = blockwise.put_together(told)[need]
    assert isinstance(table, TableEstimate)
    assert table.facts.cost.atoms == 12


def test_a_cell_that_is_declared_is_asked_of_no_group() -> None:
    """The cells of a table that its condition leaves empty, where groups of blocks answer in the place of blocks."""
    group, domain = BlockGroup(1, 0), Domain({"stay": integer(0, 2)})
    terms = BlockTerms(
        name="block",
        domain=domain,
        sizes=[10, 20],
        learns=True,
        confidence=CONFIDENCE,
        free=FREE,
        rows=lambda _: 30,
        cover=lambda first, end: [Taken(group, 1)],
    )
    need = Marginal(("stay",), Among("stay", (1,)).bind(domain))
    blockwise = Blockwise([need], terms, lambda query: Estimate(0, Facts("repeat", FREE, CONFIDENCE)))
    asked = blockwise.asked()
    assert [len(cells) for cells in asked.values()] == [1]
    found = blockwise.put_together({group: {asked[group][0]: Estimate(4, Facts("measured", FREE, CONFIDENCE))}})[need]
    assert isinstance(found, TableEstimate)
    assert found.values.tolist() == [0, 4, 0]
