"""How public knowledge learns from a released answer: the update rules and the voters of the median mechanism."""
