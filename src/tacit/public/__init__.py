"""Published knowledge: all that a session has released as one open file, read and checked without data. For anybody.

`publish` writes it, `read` answers from it with the same hypothesis, `verify` derives everything in it again. All of it
was released and paid for, so what is done with it is post-processing (Dwork, McSherry, Nissim & Smith 2006): it costs
nothing, ever. The format is described field by field in docs/reference/published.md.
"""

from tacit.public.publisher import publish
from tacit.public.reader import read
from tacit.public.verifier import Verified, verify

__all__ = ["Verified", "publish", "read", "verify"]
