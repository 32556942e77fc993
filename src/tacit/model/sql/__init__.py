"""SQL as a way of asking: text about the one table `data` is read into an `Ask`."""

from tacit.model.sql.parse import MAX_DEPTH, MAX_LENGTH, parse

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "parse"]
