"""PostgreSQL's protocol, version 3, in front of the same data sets as HTTP: same keys, parser, writer, audit log.

`listener` takes connections and `connection` speaks with one client; `statement` reads what a client asks, `answer`
makes rows of an answer, and `catalogue` answers what clients want to know about tables and columns.
"""
