"""What the owner of a table does: open it on a ledger, discover its domain, go on from a ledger, inspect one."""
