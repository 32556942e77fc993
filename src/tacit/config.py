"""The owner's configuration file: where the data are, the domain, the budget and the ledger, in TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError
from tacit.load.source import is_address, is_query
from tacit.model.budget import Budget
from tacit.model.domain import Domain

# Every setting, the type of its value and whether it must be given: the whole vocabulary but for [domain.NAME].
_SETTINGS: dict[str, dict[str, tuple[type | tuple[type, ...], bool]]] = {
    "data": {
        "source": (str, True),
        "table": (str, False),
        "person": (str, False),
        "rows_per_person": (int, False),
    },
    "budget": {"epsilon": ((int, float), True), "delta": ((int, float), True)},
    "session": {
        "ledger": (str, True),
        "mechanism": (str, False),
        "questions": (int, False),
        "hits": (int, False),
        "warm": ((int, float), False),
        "databases": (int, False),
        "records": (int, False),
        "seed": (int, False),
        "sampler": (str, False),
        "confidence": (float, False),
        "anchor": (str, False),
    },
}


@dataclass(frozen=True)
class Config:
    """A parsed configuration: the arguments of `tacit.open`."""

    data: str
    table: str | None
    domain: Domain
    budget: Budget
    ledger: Path
    options: Mapping[str, Any]


def read_config(path: str | Path) -> Config:
    """Read a configuration file. Paths in it are relative to its folder."""
    path = Path(path)
    try:
        parsed = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}. `tacit init DATA` drafts one.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path} cannot be read as a text file.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    unknown = sorted(set(parsed) - {*_SETTINGS, "domain"})
    if unknown:
        raise ConfigError(
            f"{path}: unknown section [{unknown[0]}]; there are [data], [budget], [session], [domain.NAME]."
        )
    data, budget, session = (_section(path, parsed, name) for name in _SETTINGS)
    if ("person" in data) != ("rows_per_person" in data):
        raise ConfigError(f"{path}: [data] has person and rows_per_person, or neither.")
    source = data["source"]
    if not (is_query(source) or is_address(source)):
        source = str(path.parent / source)
    options = {k: v for k, v in session.items() if k != "ledger"}
    options |= {k: v for k, v in data.items() if k in ("person", "rows_per_person")}
    if "anchor" in options:
        options["anchor"] = path.parent / options["anchor"]
    return Config(
        data=source,
        table=data.get("table"),
        domain=Domain.from_dict(parsed.get("domain", {})),
        budget=Budget(epsilon=budget["epsilon"], delta=budget["delta"]),
        ledger=path.parent / session["ledger"],
        options=options,
    )


def _section(path: Path, parsed: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given, allowed = parsed.get(name, {}), _SETTINGS[name]
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: [{name}] is a section.")
    for key, value in given.items():
        if key not in allowed:
            raise ConfigError(f"{path}: [{name}] has no setting {key}; it has {', '.join(allowed)}.")
        kind = allowed[key][0]
        if isinstance(value, bool) or not isinstance(value, kind):
            wanted = "text" if kind is str else "a whole number" if kind is int else "a number"
            raise ConfigError(f"{path}: {key} in [{name}] is {wanted}, not {type(value).__name__}.")
    for key, (_, required) in allowed.items():
        if required and key not in given:
            raise ConfigError(f"{path}: [{name}] needs {key}.")
    return given
