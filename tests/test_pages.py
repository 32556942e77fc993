"""The environment of all pages: what a template prints is escaped, and a missing name is an error."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from jinja2 import UndefinedError

from tacit.show.chart import Gauge
from tacit.show.pages import environment

EVIL = "<script>alert('x')</script>"
PAGES = environment("tacit.show")


def rendered(template: str, **values: object) -> str:
    return PAGES.from_string("{% import 'pieces.html' as pieces %}" + template).render(**values)


def test_the_templates_are_files_of_the_package() -> None:
    names = {file.name for file in files("tacit.show").joinpath("templates").iterdir()}
    assert names == set(PAGES.list_templates())
    for name in names:
        PAGES.get_template(name)


def test_the_templates_are_in_the_wheel() -> None:
    builder = WheelBuilder(str(Path(__file__).parent.parent))
    packed = {file.distribution_path for file in builder.recurse_included_files()}
    assert {f"tacit/show/templates/{name}" for name in PAGES.list_templates()} <= packed


@pytest.mark.parametrize(
    "template",
    [
        "{{ evil }}",
        "{{ {'a': evil}['a'] }}",
        "{{ pieces.grid(evil, [evil], [[evil]], right=[0]) }}",
        "{{ pieces.cards([(evil, evil)]) }}",
        "{{ pieces.listed([evil]) }}",
        "{{ pieces.code(evil) }}",
        "{{ pieces.figure(gauge, evil) }}",
        "{% call pieces.folded(evil) %}{{ evil }}{% endcall %}",
        "{% set body %}{{ evil }}{% endset %}{{ body }}",
    ],
)
def test_no_piece_prints_markup(template: str) -> None:
    text = rendered(template, evil=EVIL, gauge=Gauge(EVIL, [(EVIL, 1.0)], 2.0))
    assert EVIL not in text
    assert "&lt;script&gt;" in text
    assert EVIL in rendered("{{ evil | safe }}", evil=EVIL)  # a control


def test_words_do_not_disturb_their_neighbours_but_code_keeps_its_lines() -> None:
    assert rendered("{{ words }}", words="a\u202eb\x00\n c") == "ab\ufffd c"
    assert "a\n  b" in rendered("{{ pieces.code(words) }}", words="a\n  b")


def test_only_a_picture_is_printed_as_it_is() -> None:
    assert rendered("{{ it | drawn }}", it=Gauge("t", [], 1.0)).startswith("<svg")
    with pytest.raises(TypeError, match="Only a picture"):
        rendered("{{ it | drawn }}", it="<svg></svg>")


def test_a_missing_name_is_an_error() -> None:
    for template in ("{{ missing }}", "{{ evil.missing }}", "{% if missing %}{% endif %}"):
        with pytest.raises(UndefinedError):
            rendered(template, evil=EVIL)


def test_nothing_is_folded_around_nothing_and_no_table_without_rows() -> None:
    assert rendered("{% call pieces.folded('x') %} {% endcall %}").strip() == ""
    assert rendered("{{ pieces.grid('x', ['a'], []) }}").strip() == ""


def test_figures_as_people_read_them() -> None:
    assert rendered("{{ 12345.0 | number }} {{ 0.5 | percent }}") == "12,345 50 %"
