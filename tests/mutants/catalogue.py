"""The catalogue of planted bugs in trusted code and in the server, each with the test that must catch it.

Other planted bugs stand beside the tests that they are for, where no change of a line would do: whole broken ledgers
in crash/planted.py, broken rules in trusted/test_rules.py, broken formulas in exact/, broken servers in
serve/killing.py and serve/fuzzing.py. They are not repeated here.
"""

from __future__ import annotations

from mutant import Mutant
from mutants_of_blocks import BLOCKS
from mutants_of_budgets import BUDGETS
from mutants_of_cells import CELLS
from mutants_of_discovery import DISCOVERY
from mutants_of_gates import GATES
from mutants_of_noise import NOISE
from mutants_of_prices import PRICES
from mutants_of_server import SERVER
from mutants_of_store import STORE

MUTANTS: tuple[Mutant, ...] = (*NOISE, *PRICES, *GATES, *CELLS, *DISCOVERY, *STORE, *BUDGETS, *BLOCKS, *SERVER)
