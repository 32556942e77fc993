"""Pictures: valid, small, the same every time, readable by people and machines, and closed to hostile labels."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from tacit.show.chart import Area, Axis, Bars, Chart, Gauge, Grid, Heat, Points, Polyline, Rule, Ticks
from tacit.show.chart.axes import fit
from tacit.show.chart.marks import Mark
from tacit.show.chart.paint import COLOUR_ROLES, Picture, clip, ladder, number, width, wrap
from tacit.show.chart.shapes import thin

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    "a & b",
    "\"quoted\" 'twice'",
    "]]> --> <!--",
    "x" * 500,
    "words " * 100,
    "👩‍👩‍👧 😀",
    "שלום עולם",
    "\u202eabc\u2066",
    "\x00\x1b\ud800\uffff",
    "two\nlines\ttab",
    "",
]


def whiskers(values: ArrayLike, error: ArrayLike) -> dict[str, Any]:
    return {"low": np.subtract(values, error), "high": np.add(values, error)}


def every_kind() -> dict[str, Picture]:
    rng = np.random.Generator(np.random.PCG64(7))
    x = np.arange(50.0)
    share = 1 - np.exp(-x / 20)
    counts, large = rng.integers(0, 900, 10), [1e7, 2e6, -5e5]
    bins = Axis("age", categories=[f"{i}–{i + 9}" for i in range(0, 100, 10)])
    names = Axis(categories=["north of the river", "south", "a rather long name of a category, cut"])
    charts = {
        "steps": Chart(
            "Distribution",
            x=Axis("age"),
            y=Axis("share", percent=True, low=0, high=1),
            marks=[
                Area(x, share - 0.1, share + 0.1, name="direct"),
                Polyline(x, share, name="direct", steps=True),
                Rule(y=0.5, name="half"),
                Rule(x=20.0, name="twenty"),
            ],
        ),
        "upright": Chart("Upright", x=bins, y=Axis("rows"), marks=[Bars(counts, **whiskers(counts, 20))]),
        "lying": Chart("Lying", y=names, x=Axis("rows"), marks=[Bars(large, **whiskers(large, [1e5, 2e5, 3e5]))]),
        "heat": Chart("Heat", x=bins, y=names, marks=[Heat(rng.integers(0, 99, (3, 10)), name="rows")]),
        "log": Chart(
            "Log",
            x=Axis("epsilon", log=True),
            y=Axis("error", log=True),
            marks=[
                Polyline([0.01, 1, 10], [9e5, 1e4, 30], name="one"),
                Polyline([0.01, 1, 10], [1e3, 500, 400], name="two"),
            ],
        ),
        "scatter": Chart(
            "Scatter", marks=[Points(x, share, **whiskers(share, 0.1)), Points(x, -share, name="b", shape="diamond")]
        ),
        "timeline": Chart(
            "Timeline",
            x=Axis("question"),
            y=Axis("hard so far"),
            marks=[Polyline(x[::5], np.arange(10), steps=True), Ticks(x[::5], name="hard"), Ticks(x, name="easy")],
        ),
        "empty": Chart("Empty", marks=[Polyline([], []), Points([], [], low=[], high=[])]),
    }
    grid = Grid("All", list(charts.values()), columns=3, same_y=True)
    gauge = Gauge("Budget", [("ages", 0.5), ("gates", 0.25)], total=2, unit="epsilon")
    return {**charts, "grid": grid, "gauge": gauge}


KINDS = sorted(every_kind())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_valid_named_and_closed(kind: str) -> None:
    picture = every_kind()[kind]
    root = ET.fromstring(picture.svg())
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    title, desc = root[0], root[1]
    assert (title.tag, desc.tag) == (f"{SVG}title", f"{SVG}desc")
    assert title.text == picture.title
    assert desc.text
    assert root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    allowed = {"svg", "title", "desc", "style", "rect", "path", "g", "text"}
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= allowed
    attributes = {name for node in root.iter() for name in node.attrib}
    assert not {name for name in attributes if name.startswith("on") or "href" in name or name == "style"}
    assert not re.search(r"url\(|@import|https?:(?!//www\.w3\.org/2000/svg\")", picture.svg())


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_data_give_the_same_text_everywhere(kind: str, tmp_path: Path) -> None:
    first, second = every_kind()[kind], every_kind()[kind]
    assert first.svg() == second.svg() == first._repr_html_()  # type: ignore[attr-defined]
    assert first.save(tmp_path / "a.svg").read_text(encoding="utf-8") == first.svg()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [200, 320, 640, 1000])
def test_everything_stays_on_the_paper_and_no_labels_touch(kind: str, wide: int) -> None:
    picture = every_kind()[kind]
    if not isinstance(picture, Grid):
        picture = replace(picture, width=wide)  # type: ignore[type-var]
    root = ET.fromstring(picture.svg())
    right_edge, bottom_edge = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = _boxes(root, 0.0, 0.0)
    for left, top, right, bottom, words in boxes:
        assert left >= -0.5, words
        assert right <= right_edge + 0.5, words
        assert top >= 0, words
        assert bottom <= bottom_edge, words
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert not _overlap(one, other), (one, other)


def test_the_check_of_overlaps_can_fail() -> None:
    assert _overlap((0, 0, 10, 10, "a"), (9, 9, 20, 20, "b"))


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_only_words(label: str) -> None:
    x = Axis(label, categories=[label, "b", label])
    y = Axis(label)
    marks: list[Mark] = [
        Bars([1, 2, 3], low=[0, 1, 2], high=[2, 3, 4], name=label),
        Points([0, 1], [1, 2], name=label),
        Rule(y=2, name=label),
    ]
    charts = [
        Chart(label, x=x, y=y, marks=marks, note=label),
        Chart(label, y=x, x=y, marks=[Bars([1, 2, 3], name=label)]),
        Chart(label, x=x, y=x, marks=[Heat(np.eye(3), name=label)]),
        Chart(label, marks=[Polyline([1, 2], [1, 2], name=label), Ticks([1, 2], name=label)], empty=label),
        Chart(label, empty=label),
    ]
    for picture in (*charts, Grid(label, charts), Gauge(label, [(label, 1)], total=2, unit=label)):
        root = ET.fromstring(picture.svg())
        assert not list(root.iter("script"))
        assert not list(root.iter(f"{SVG}script"))
        assert "\u202e" not in picture.svg()
        for left, _, right, _, words in _boxes(root, 0.0, 0.0):
            assert left >= -1, words
            assert right <= float(root.attrib["width"]) + 1, words


def test_what_is_cut_is_shown_when_pointed_at() -> None:
    long = "category " * 20
    svg = Chart("t", y=Axis(categories=[long, "b"]), marks=[Bars([1, 2])]).svg()
    texts = [node for node in ET.fromstring(svg).iter(f"{SVG}text") if node.find(f"{SVG}title") is not None]
    assert [node.find(f"{SVG}title").text for node in texts] == [long.strip()]  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e101])
def test_no_picture_of_what_is_not_a_number(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Polyline([1, 2], [1, bad])
    with pytest.raises(ValueError, match="finite"):
        Points([1, bad], [1, 2])
    with pytest.raises(ValueError, match="finite"):
        Bars([1, 2], low=[0, bad])
    with pytest.raises(ValueError, match="finite"):
        Heat([[1, bad]])
    with pytest.raises(ValueError, match="finite"):
        Area([1], [bad], [1])
    with pytest.raises(ValueError, match="finite"):
        Rule(x=bad)
    with pytest.raises(ValueError, match="finite"):
        Axis(low=bad)
    with pytest.raises(ValueError, match="finite"):
        Gauge("g", [("a", bad)], total=1)


def test_what_cannot_be_drawn_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="equally many"):
        Polyline([1, 2], [1])
    with pytest.raises(ValueError, match="not decrease"):
        Polyline([2, 1], [1, 2], steps=True)
    with pytest.raises(ValueError, match="must be numbers"):
        Polyline(["a"], [1])
    with pytest.raises(ValueError, match="not be above"):
        Points([1], [1], low=[2])
    with pytest.raises(ValueError, match="not be above"):
        Area([1], [2], [1])
    with pytest.raises(ValueError, match="above 0"):
        Chart("t", y=Axis(log=True), marks=[Polyline([1, 2], [0, 1])])
    with pytest.raises(ValueError, match="as many values"):
        Chart("t", x=Axis(categories=["a"]), marks=[Bars([1, 2])])
    with pytest.raises(ValueError, match="one series"):
        Chart("t", x=Axis(categories=["a"]), marks=[Bars([1], name="a"), Bars([2], name="b")])
    with pytest.raises(ValueError, match="both axes"):
        Chart("t", x=Axis(categories=["a"]), marks=[Heat([[1]])])
    with pytest.raises(ValueError, match="exceed"):
        Gauge("g", [("a", 2)], total=1)


@pytest.mark.parametrize(
    "marks", [[], [Polyline([], [])], [Rule(y=1)], [Points([], [])], [Ticks([])], [Heat([])], [Heat(np.empty((0, 3)))]]
)
def test_nothing_to_draw_is_said(marks: list[Mark]) -> None:
    svg = Chart("t", marks=marks, empty="No question was asked yet.").svg()
    assert "No question was asked yet." in [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]


def test_no_categories_is_nothing_to_draw() -> None:
    assert "nothing to show" in Chart("t", x=Axis(categories=[]), marks=[Bars([])]).svg()


def test_large_data_make_small_files() -> None:
    rng = np.random.Generator(np.random.PCG64(3))
    n = 100_000
    x, y = np.arange(n, dtype=float), rng.normal(size=n)
    many = [str(i) for i in range(20_000)]
    pictures = {
        "line": Chart("t", marks=[Polyline(x, y)]),
        "steps": Chart("t", marks=[Polyline(x, y, name=str(i), steps=True) for i in range(8)]),
        "band": Chart("t", marks=[Area(x, y - 1, y + 1)]),
        "bars": Chart("t", x=Axis(categories=many), marks=[Bars(y[:20_000], **whiskers(y[:20_000], 1))]),
        "lying": Chart("t", y=Axis(categories=many), marks=[Bars(y[:20_000])]),
        "ticks": Chart("t", marks=[Ticks(x)]),
        "heat": Chart(
            "t", x=Axis(categories=many[:400]), y=Axis(categories=many[:250]), marks=[Heat(y.reshape(250, 400))]
        ),
        "flat heat": Chart("t", x=Axis(categories=many), y=Axis(categories=["a"]), marks=[Heat(y[None, :20_000])]),
    }
    for name, picture in pictures.items():
        assert len(picture.svg().encode()) < 200_000, name


def test_thinning_keeps_every_extreme_and_a_stride_does_not() -> None:
    y = np.zeros(100_000)
    y[54_321], y[12_345] = 1, -1
    x = np.linspace(0, 600, y.size)
    few, kept = thin(x, y, 1.0)
    assert few.size < 3000
    assert (kept.min(), kept.max()) == (-1, 1)
    assert (few[0], few[-1]) == (0, 600)
    assert np.all(np.diff(few) >= 0)
    assert y[::40].max() == 0  # the control: every fortieth point loses the peak


def test_values_are_drawn_where_they_are() -> None:
    svg = Chart("t", x=Axis(low=0, high=10), y=Axis(low=0, high=4), marks=[Polyline([0, 5, 10], [0, 4, 2])]).svg()
    path = next(n.attrib["d"] for n in ET.fromstring(svg).iter(f"{SVG}path") if n.get("stroke-width") == "2")
    (x0, y0, x1, y1, x2, y2) = (float(v) for v in re.findall(r"[\d.]+", path))
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert (y0 - y2) * 2 == pytest.approx(y0 - y1, abs=0.2)
    assert y1 < y2 < y0


def test_a_whisker_below_zero_leaves_a_logarithmic_picture() -> None:
    for marks in ([Points([1, 2], [5, 50], low=[-5, 40], high=[15, 60])], [Area([1, 2], [-1, 2], [3, 4])]):
        chart = Chart("t", y=Axis(log=True), marks=marks)
        ET.fromstring(chart.svg())
        assert 0 < chart.scales()[1].low <= 5


def test_whiskers_go_along_the_axis_of_their_numbers() -> None:
    names = Axis(categories=["a", "b"])
    lying = Chart("t", y=names, marks=[Points([10, 20], [0, 1], low=[5, 15], high=[15, 25], across=True)])
    assert lying.scales()[0].low < 5 < 25 < lying.scales()[0].high
    whiskers = next(p for p in _paths(lying) if "M" in p and "H" in p and "v6" in p)
    assert whiskers.count("H") == 2
    upright = Chart("t", x=Axis(log=True), marks=[Points([1, 10], [0, 1], low=[-5, -4], high=[5, 6])])
    assert upright.scales()[1].low <= -5


def test_colours_follow_names() -> None:
    marks = [
        Area([1, 2], [1, 1], [2, 2], name="b"),
        Polyline([1, 2], [1, 2], name="a"),
        Polyline([1, 2], [2, 1], name="b"),
    ]
    svg = Chart("t", marks=marks).svg()
    strokes = re.findall(r'class="tc-s-(\d)" fill="none" stroke="[^"]+" stroke-width="2" stroke-linejoin', svg)
    assert strokes == ["1", "0"]
    assert 'class="tc-f-0"' in svg


def test_light_and_dark_can_both_be_read() -> None:
    for which in (0, 1):
        paper = COLOUR_ROLES["paper"][which]
        for role, both in COLOUR_ROLES.items():
            least = {"paper": 1.0, "grid": 1.15, "ink": 12.0, "soft": 5.0}.get(role, 2.7)
            assert _contrast(both[which], paper) >= least, (role, which)
    svg = Chart("t", marks=[Polyline([1, 2], [1, 2])]).svg()
    assert "@media (prefers-color-scheme: dark)" in svg
    assert f"--tc-ink:{COLOUR_ROLES['ink'][1]}" in svg


@pytest.mark.parametrize(
    ("axis", "data", "labels"),
    [
        (Axis(), [0, 95], ["0", "20", "40", "60", "80", "100"]),
        (Axis(), [0, 2], ["0", "1", "2"]),
        (Axis(), [-1.5, 1.5], ["−1.5", "−1.0", "−0.5", "0", "0.5", "1.0", "1.5"]),
        (Axis(), [0, 4_000_000], ["0", "1M", "2M", "3M", "4M"]),
        (Axis(), [0, 9000], ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]),
        (Axis(percent=True), [0, 1], ["0%", "20%", "40%", "60%", "80%", "100%"]),
        (Axis(log=True), [0.02, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]),
        (Axis(log=True), [1, 1e5], ["1", "10", "100", "1,000", "10,000", "100,000"]),
        (Axis(log=True), [1e-12, 1e12], ["10⁻¹²", "10⁻⁸", "10⁻⁴", "10⁰", "10⁴", "10⁸", "10¹²"]),
        (Axis(), [5, 5], ["4", "5", "6"]),
    ],
)
def test_ticks(axis: Axis, data: list[float], labels: list[str]) -> None:
    assert fit(axis, [np.array(data, dtype=float)], zero=False, nice=True).ticks(7)[1] == labels


@given(
    st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=5),
    st.booleans(),
    st.booleans(),
    st.integers(200, 900),
)
@settings(max_examples=150)
def test_any_numbers_can_be_drawn(values: list[float], log: bool, barred: bool, wide: int) -> None:
    values = [max(abs(v), 1e-100) for v in values] if log else values
    y = Axis("y", log=log)
    if barred:
        chart = Chart("t", x=Axis(categories=list("abcde")[: len(values)]), y=y, marks=[Bars(values)], width=wide)
    else:
        chart = Chart(
            "t", x=Axis(log=log), y=y, marks=[Points(values, values), Polyline(sorted(values), values)], width=wide
        )
    svg = chart.svg()
    ET.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg


def test_words_and_numbers() -> None:
    assert [number(v) for v in (0, 7, 1234.4, 999_999, 1.5e9, -2.5, 1e-9)] == [
        "0", "7", "1,234", "1M", "1.5G", "−2.5", "10⁻⁹",
    ]  # fmt: skip
    assert ladder([0.0, 0.05, 0.1], 0.05) == ["0", "0.05", "0.10"]
    assert width(clip("m" * 300, 100)) <= 100
    assert wrap("one two three four", 60, 12, 2) == ["one two", "three f…"]
    assert wrap("", 100) == []


def test_the_import_is_cheap_and_needs_nothing_else() -> None:
    program = (
        "import itertools, sys, numpy; import numpy.typing; before = set(sys.modules); calls = itertools.count(); "
        "sys.setprofile(lambda frame, event, given: next(calls)); "
        "import importlib.util as u; s = u.spec_from_file_location('tacit', sys.argv[1], submodule_search_locations="
        "[sys.argv[1].rsplit('/', 1)[0]]); sys.modules['tacit'] = u.module_from_spec(s); import tacit.show.chart; "
        "sys.setprofile(None); new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(next(calls)); print(*sorted(new - set(sys.stdlib_module_names)))"
    )
    source = Path(__file__).parents[1] / "src" / "tacit" / "__init__.py"
    run = subprocess.run([sys.executable, "-c", program, str(source)], capture_output=True, text=True, check=True)
    events, new = run.stdout.splitlines()
    assert new == "tacit"
    assert int(events) < 100_000  # calls and returns: 34,000 today, some 10 ms


def _paths(chart: Chart) -> list[str]:
    return [node.attrib["d"] for node in ET.fromstring(chart.svg()).iter(f"{SVG}path")]


def _boxes(node: ET.Element, dx: float, dy: float) -> list[tuple[float, float, float, float, str]]:
    """Where the words are, without those that are turned."""
    moved = re.match(r"translate\(([-\d.]+) ([-\d.]+)\)", node.get("transform", ""))
    if moved:
        dx, dy = dx + float(moved[1]), dy + float(moved[2])
    found = []
    if node.tag == f"{SVG}text" and "rotate" not in node.get("transform", "") and node.text:
        size = float(node.get("font-size", "12"))
        long, x, y = width(node.text, size), float(node.attrib["x"]) + dx, float(node.attrib["y"]) + dy
        left = x - long * {"middle": 0.5, "end": 1.0}.get(node.get("text-anchor", "start"), 0.0)
        found.append((left, y - 0.75 * size, left + long, y + 0.2 * size, node.text))
    for child in node:
        found += _boxes(child, dx, dy)
    return found


def _overlap(a: tuple[float, float, float, float, str], b: tuple[float, float, float, float, str]) -> bool:
    return a[0] < b[2] - 0.5 and b[0] < a[2] - 0.5 and a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5


def _contrast(one: str, other: str) -> float:
    """Of two colours, as WCAG 2 defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
