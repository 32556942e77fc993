"""Counts over several blocks: sums of what each block says, and how far off a sum is. Post-processing.

Blocks have ledgers of their own, and so have groups of blocks, so their noise is independent. A sum may have terms that
are taken off: noise is symmetric, and the size of an error is that of its negative. Three bars of a sum are proved.

- By the law of noise. Where a block tells a centre around which its truth lies by the law of some draws, the sum of the
  truths lies around the sum of the centres by the law of all draws together: like the root of the sum of squares. What
  is shown may be another sum, whose distance from that one is public, and is added.
- By certified largest errors. No error of a block is above its certified one, so the sum's is not above theirs; each is
  known but for one draw, and these draws again add up like independent ones. The errors themselves add linearly: they
  are those of a guess, and may all have one sign.
- By the blocks' own bars, which add linearly, and hold all at once with what the union bound leaves.

Which of them there are is decided by what was bought and how, never by a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.model.budget import Loss
from tacit.model.facts import EXACT, NOISE, Bar, Facts, Source, about, all_of, joined
from tacit.model.noise_law import Noise
from tacit.release.estimate import Centre, Estimate, TableEstimate, for_each
from tacit.release.evidence import sure
from tacit.release.hypothesis.noise_sum import Draws, width_of_all
from tacit.release.purchases import split

_FIRST: tuple[Source, ...] = ("measured", "hypothesis", "repeat", "public")
_MANY = 3  # blocks whose notes a sum repeats


def in_steps(estimate: Estimate, times: int) -> Estimate:
    """An answer on a grid with `times` steps for each of its own; below 0, as it is taken off a sum."""
    if times == 1:
        return estimate
    size = abs(times)
    bars = tuple(replace(bar, width=bar.width * size) for bar in estimate.facts.bars)
    centre, ceiling = estimate.centre, estimate.ceiling
    if centre is not None:
        centre = Centre(centre.value * times, centre.draws.times(times), centre.rounded * size)
    if ceiling is not None:
        ceiling = ceiling._replace(least=ceiling.least * size, draws=ceiling.draws.times(times))
    return Estimate(estimate.value * times, replace(estimate.facts, bars=bars), centre, ceiling)


def summed(blocks: Sequence[Estimate], confidence: float, levels: Sequence[int] = ()) -> Estimate:
    """The count over blocks whose own counts these are, on one grid; `levels` are those of their ledgers."""
    noisy = [one for one in blocks if one.facts.bars[:1] == () or one.facts.bars[0].about != EXACT]
    value = sum(one.value for one in blocks)
    facts = facts_of_blocks([one.facts for one in (noisy or blocks)], confidence)
    facts = replace(facts, cost=paid([one.facts for one in blocks], levels))
    if len(noisy) == 1:  # all else is public: the bars of one block are those of the sum
        return replace(noisy[0], value=value, facts=replace(facts, bars=noisy[0].facts.bars))
    if not noisy:
        return Estimate(value, facts.within(0, EXACT))
    bars = _bars(noisy, confidence)
    return Estimate(value, replace(facts, bars=bars))


def _bars(noisy: Sequence[Estimate], confidence: float) -> tuple[Bar, ...]:
    """Every bar of a sum that is proved at the confidence, the narrowest first; else the one at what is left of it."""
    centres = [one.centre for one in noisy if one.centre is not None]
    ceilings = [one.ceiling for one in noisy if one.ceiling is not None]
    whole, capped = len(centres) == len(noisy), len(ceilings) == len(noisy)
    bars = list[Bar]()
    # Where the narrower of two bars is shown, both must hold: what may go wrong is parted between them.
    read, others = (split(confidence).read, split(confidence).others) if whole and capped else (confidence, confidence)
    if whole:
        bars.append(Bar(_reach(noisy, read), NOISE, confidence))
    if capped:
        # The draws are symmetric, and only what they may hide counts: one side of them.
        beyond = width_of_all([one.draws for one in ceilings], 1 - 2 * (1 - others)) if others > 0.5 else 0.0
        width = max(1.0, math.ceil(sum(one.least for one in ceilings) + beyond))
        bars.append(Bar(width, all_of(sum(one.questions for one in ceilings)), confidence))
    if bars:
        return tuple(sorted(bars, key=lambda bar: bar.width))
    rest = [one for one in noisy if one.centre is None]
    shown = [one.facts.bars[0] for one in rest if one.facts.bars]
    # Every block counts, as which of them have a bar of their own may follow from what gates said.
    left = sure(len(noisy) + bool(centres), confidence)
    if len(shown) < len(rest) or left <= 0:
        return ()
    together = _reach([one for one in noisy if one.centre is not None], confidence) if centres else 0.0
    parts = [*shown, *([Bar(together, NOISE, confidence)] if centres else [])]
    return (Bar(together + sum(bar.width for bar in shown), about(parts, left), left),)


def _reach(noisy: Sequence[Estimate], confidence: float) -> float:
    """How far the truth of a sum is from what is shown: the law of all draws, and the way from their centre."""
    centres = [one.centre for one in noisy if one.centre is not None]
    off = abs(sum(one.value for one in noisy) - sum(centre.value for centre in centres))
    width = width_of_all([centre.draws for centre in centres], confidence)
    return math.ceil(off + width + sum(centre.rounded for centre in centres))


def paid(ledgers: Sequence[Facts], levels: Sequence[int] = ()) -> Loss:
    """The most that a row's ledgers were charged together: it is in one of each level."""
    most = dict[int, int]()
    for one, level in zip(ledgers, levels or [0] * len(ledgers), strict=True):
        most[level] = max(most.get(level, 0), one.cost.atoms)
    return Loss(ledgers[0].cost.measure, sum(most.values()))


def facts_of_blocks(blocks: Sequence[Facts], confidence: float) -> Facts:
    """The facts of what several ledgers say: the newest source, and the most that any one of them was charged.

    Every row is in one block, so what a row's ledger was charged is what the answer costs for it. A receipt is of one
    ledger: of several there is none.
    """
    source = min((one.source for one in blocks), key=_FIRST.index)
    notes = list(dict.fromkeys(one.note for one in blocks if one.note))
    more = f"and {len(notes) - _MANY:,} more notes" if len(notes) > _MANY else ""
    receipt = blocks[0].receipt if len(blocks) == 1 else None
    return Facts(source, paid(blocks), confidence, receipt, joined((*notes[:_MANY], more)))


def summed_table(
    blocks: Sequence[TableEstimate], confidence: float, levels: Sequence[int] = ()
) -> TableEstimate | None:
    """The table over blocks all whose cells have noise of one law; None where they have not."""
    law = _law(blocks)
    if law is None:
        return None
    draws = sum(one.draws for one in blocks)
    facts = facts_of_blocks([one.facts for one in blocks], confidence)
    facts = replace(facts, cost=paid([one.facts for one in blocks], levels))
    width = width_of_all([Draws(law, draws, 1.0, draws)], confidence)
    values = np.sum([one.values for one in blocks], axis=0)
    return TableEstimate(values, facts.within(width), law, draws)


def stacked(blocks: Sequence[TableEstimate], axis: int, confidence: float) -> TableEstimate:
    """The table with one more attribute, the block: every cell is that of its block, with its bar."""
    facts = facts_of_blocks([one.facts for one in blocks], confidence)
    facts = replace(facts, bars=for_each([one.facts.bars for one in blocks]))
    values = np.stack([one.values for one in blocks], axis=axis)
    return TableEstimate(values, facts, _law(blocks), max(one.draws for one in blocks))


def _law(blocks: Sequence[TableEstimate]) -> Noise | None:
    """The noise that every cell of these has; None where one does not say, or has another."""
    laws = {one.noise for one in blocks}
    return laws.pop() if len(laws) == 1 else None
