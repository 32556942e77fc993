"""Sampling the distributions over X that agree with released answers: fractional databases for the median mechanism."""
