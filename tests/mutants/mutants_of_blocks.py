"""Planted bugs in series of blocks: rows that are asked about twice, blocks that are taken for one another, bars."""

from __future__ import annotations

from mutant import plant

_BLOCK, _MANIFEST, _LEDGERS, _TERMS = "model/block.py", "manifest.py", "block_ledgers.py", "series_terms.py"
_WINDOW = "release/window.py"
_ONCE = "test_series.py::test_a_label_and_rows_stand_once"
_STAYS = "test_series.py::test_the_budget_of_a_block_stays_what_the_series_promises"

BLOCKS = (
    plant(
        "the same rows under two labels",
        "a row is in one block",
        _MANIFEST,
        "if block.fingerprint == fingerprint), None)",
        "if block.origin == fingerprint), None)",
        _ONCE,
    ),
    plant(
        "a label for other rows",
        "a label stands for the same rows for ever",
        _MANIFEST,
        "    if label in (block.label for block in blocks):",
        "    if label in (block.ledger for block in blocks):",
        _ONCE,
    ),
    plant(
        "rows that are read for a series that went back",
        "a series that went back takes no more blocks",
        _MANIFEST,
        '        if any(self._log.lines(kinds=["override"])):',
        '        if any(self._log.lines(kinds=["closed"])):',
        "test_series.py::test_a_series_that_went_back_takes_no_more_blocks",
    ),
    plant(
        "a block after a rollback that was accepted meanwhile",
        "a series that went back takes no more blocks",
        _MANIFEST,
        '            if transaction.newest("override") is not None:',
        '            if transaction.newest("override") is self:',
        "test_series.py::test_a_rollback_that_is_accepted_meanwhile_is_noticed",
    ),
    plant(
        "another block's ledger",
        "a block is asked about with its own ledger alone",
        _LEDGERS,
        "        if session.origin != block.origin:",
        "        if session.origin == block.ledger:",
        "test_series.py::test_another_blocks_ledger_is_not_taken_for_its_own",
    ),
    plant(
        "a budget raised by itself",
        "all blocks together keep what the series promises",
        _LEDGERS,
        "        if session.budget != self.terms.each:",
        "        if session.budget == self.terms.name:",
        "test_series.py::test_a_block_whose_budget_was_raised_by_itself_is_refused",
    ),
    plant(
        "a block's budget raised in an open series",
        "all blocks together keep what the series promises",
        "extension.py",
        "    if PART_OF in ledger.log.identity.terms:",
        "    if PART_OF == ledger.log.identity.terms:",
        _STAYS,
    ),
    plant(
        "a ledger that continues a block's",
        "all blocks together keep what the series promises",
        "continuation.py",
        "        if made.part_of is not None:",
        "        if made.part_of == made.person and made.part_of:",
        _STAYS,
    ),
    plant(
        "a block's ledger that does not know its series",
        "all blocks together keep what the series promises",
        "opening.py",
        "        binding = {**binding, PART_OF: series}",
        "        pass",
        _STAYS,
    ),
    plant(
        "more blocks than were declared",
        "the budget of a person over blocks is divided among as many as there may be",
        _LEDGERS,
        "if terms.most is not None and len(self.listed) >= terms.most:",
        "if terms.most is not None and len(self.listed) > terms.most:",
        "test_series.py::test_a_person_over_blocks_has_a_part_of_the_budget_in_each",
    ),
    plant(
        "the whole budget for each block of a person",
        "the budget of a person over blocks is divided among as many as there may be",
        _TERMS,
        "return all(blocks * total(one, m).atoms <= total(budget, m).atoms for",
        "return all(total(one, m).atoms <= total(budget, m).atoms for",
        "exact/test_blocks.py::test_the_budget_of_a_person_over_blocks_adds_up_to_the_whole",
    ),
    plant(
        "the first block's question for all",
        "a question over blocks is the sum of one for each",
        _BLOCK,
        "weights = np.asarray(tied.weights.take(block, axis))",
        "weights = np.asarray(tied.weights.take(0, axis))",
        "exact/test_blocks.py::test_a_question_over_blocks_is_the_sum_of_one_for_each",
    ),
    plant(
        "certified errors without their noise",
        "a bar over blocks holds as often as it says",
        _WINDOW,
        "width = max(1.0, math.ceil(sum(one.least for one in ceilings) + beyond))",
        "width = max(1.0, math.ceil(sum(one.least for one in ceilings)))",
        "release/test_window.py::test_certified_errors_add_linearly_and_their_noise_does_not",
    ),
    plant(
        "the distance of what is shown left out",
        "a bar over blocks holds as often as it says",
        _WINDOW,
        "return math.ceil(off + width +",
        "return math.ceil(width +",
        "release/test_window.py::test_how_far_the_shown_sum_is_from_the_centres_is_in_the_bar",
    ),
    plant(
        "one block's confidence for all",
        "a bar over blocks holds as often as it says",
        _WINDOW,
        "left = sure(len(noisy) + bool(centres), confidence)",
        "left = sure(1, confidence)",
        "release/test_window.py::test_other_bars_add_linearly_and_lose_confidence",
    ),
)
