"""Published knowledge: all that a session has released as one open file, read and checked without data. For anybody.

`publish` writes it, `read` answers from it with the same hypothesis, `verify` derives everything in it again. The
format is described field by field in docs/reference/published.md.
"""

from tacit.publishing.knowledge import Verified, publish, read, verify

__all__ = ["Verified", "publish", "read", "verify"]
