"""The pages of the server: HTML made here, plain forms, and one small script of our own. `run.serve` calls `routes`.

Everything works without the script, and nothing is loaded from anywhere else. A page shows what an analyst may see
through the API and no more, and asks through the same door.
"""

from tacit.serve.page.routes import routes

__all__ = ["routes"]
