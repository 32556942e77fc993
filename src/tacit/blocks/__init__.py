"""A table that grows by blocks of different rows: a ledger for each of them, and one `Series` to ask them all."""
