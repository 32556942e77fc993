"""Samplers of databases that agree with released answers: public post-processing for the median mechanism."""
