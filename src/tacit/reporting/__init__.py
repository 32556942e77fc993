"""A page about a session that can be handed on: what was spent, on what, and what came of it. For anybody.

`report` writes one HTML file from what has been released. It costs nothing, and works for what `tacit.read` gives too.
"""

from tacit.reporting.sections import page, report

__all__ = ["page", "report"]
