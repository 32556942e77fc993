"""Sampling databases of m records that agree with released answers: public post-processing for the median mechanism."""
