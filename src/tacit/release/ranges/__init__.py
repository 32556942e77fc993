"""Every range of an ordered attribute from one release: what to ask instead, and how to recover the answers."""
