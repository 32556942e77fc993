"""Samplers of databases that agree with released answers: public post-processing for the median mechanism.

`databases` has databases of m records, `fractions` fractional ones. Both hold many samples; a step moves each of them
with its own random numbers, and leaves the uniform law on what agrees with the answers as it is.
"""

from importlib.util import find_spec

from tacit.errors import ConfigError


def check() -> None:
    """Refuse to go on where numba is not installed: without it a hard answer would take minutes."""
    if find_spec("numba") is None:
        raise ConfigError('mechanism="median" needs numba: pip install "tacit-dp[median]". Nothing was spent.')
