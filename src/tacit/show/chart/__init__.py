"""Pictures as SVG text: one renderer for notebooks, pages and files. Anybody may call it; it knows only numbers.

No script, no font, no address inside: a picture is the same wherever it is opened, follows the reader's light or dark
setting, and says in words what it shows.

>>> ages = Axis("age", categories=["0–19", "20–39", "40–59"])
>>> chart = Chart("Visits by age", x=ages, y=Axis("rows"), marks=[Bars([120, 340, 260])])
>>> chart.svg()[:26]
'<svg xmlns="http://www.w3.'
"""

from tacit.show.chart.axes import Axis
from tacit.show.chart.figure import Chart, Gauge, Grid
from tacit.show.chart.marks import Area, Bars, Heat, Points, Polyline, Rule, Ticks

__all__ = ["Area", "Axis", "Bars", "Chart", "Gauge", "Grid", "Heat", "Points", "Polyline", "Rule", "Ticks"]
