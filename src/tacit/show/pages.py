"""One Jinja environment for every page: the report's and the server's. They may call it; it knows only words.

Everything that a template prints is escaped, but for our own pictures (`drawn`), which escape their words themselves.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tacit.show.chart.paint import Picture
from tacit.show.chart.text import clean

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@cache
def environment(package: str, *, styled: bool = True) -> Environment:
    """The templates in a package's folder `templates`, and after them those of this package (`pieces.html`).

    styled: pictures bring their own style sheet; pages that load it (`chart.paint.CSS`) need it only once.

    A name that a template misses is an error, never an empty place. Text loses what could disturb its neighbours; where
    line breaks matter, `{{ lines | e }}` only escapes it.
    """
    # Loaded here, since a program that shows no page should not wait for it.
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("tacit.show")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_tidy,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"drawn": partial(drawn, styled=styled), "number": number, "percent": percent}
    return made


def drawn(picture: Picture, name: str = "", *, styled: bool = True) -> Markup:
    """A picture as SVG, called `name` if it has no title. Nothing else reaches a page without being escaped here."""
    from markupsafe import Markup

    if not isinstance(picture, Picture):
        raise TypeError("Only a picture is drawn.")
    return Markup(picture.svg(name=name, styled=styled))


def notebook(**parts: object) -> str:
    """An answer as a notebook shows it, from the parts that it has. `notebook.html` names them."""
    return environment("tacit.show").get_template("notebook.html").render(parts)


def number(value: float) -> str:
    """A figure as people read it: whole, or with as many digits as it takes to see it.

    >>> number(12345.0), number(0.5), number(0.000012345)
    ('12,345', '0.5', '1.23e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def percent(share: float) -> str:
    """
    >>> percent(0.5), percent(0.00012)
    ('50 %', '0.012 %')
    """
    return f"{100 * share:.3g} %"


def _tidy(value: Any) -> Any:
    """What a template prints, before it is escaped. Markup is finished already."""
    return value if hasattr(value, "__html__") else clean(str(value))
