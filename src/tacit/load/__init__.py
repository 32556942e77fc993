"""Reading tables: which engine holds the rows, what its columns are, and which bin each value falls into.

This package sees rows, so nothing an engine says when it fails leaves it (`source.Source` is the one door). It decides
no privacy: `trusted/cells.py` builds the statement around its expressions and checks them and what the engine counts.
"""
