"""Samplers of databases that agree with released answers: public post-processing for the median mechanism.

`databases` has databases of m records, `fractions` fractional ones. Both hold many samples; a step moves each of them
with its own random numbers, and leaves the uniform law on what agrees with the answers as it is. Both start from
nothing. `weighted_records` has databases that `plausible_databases` draws from what a warm start has released.
"""

from importlib.util import find_spec

from tacit.errors import ConfigError, InvalidQuery

MOST_SAMPLED_CELLS = 2**26  # of all databases' tables together


def check() -> None:
    """Refuse to go on where numba is not installed: without it a hard answer would take minutes."""
    if find_spec("numba") is None:
        raise ConfigError('mechanism="median" needs numba: pip install "tacit-dp[median]". Nothing was spent.')


def check_tables(cells: int, databases: int) -> None:
    """Refuse tables that are too large for that many databases."""
    if cells * databases > MOST_SAMPLED_CELLS:
        raise InvalidQuery(
            f"{databases:,} tables of {cells:,} cells are more than the {MOST_SAMPLED_CELLS:,} cells allowed."
        )
