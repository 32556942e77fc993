"""A server's data set asked from Python, over HTTP: the interface of a session, without an engine, a ledger or data.

Every question may be asked again for nothing, so whatever is lost on the way is sent once more and never paid twice.
"""

from tacit.client.client import Client, connect

__all__ = ["Client", "connect"]
