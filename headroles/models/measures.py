"""Measures of attention: where a head looks, or what it takes from there."""

WEIGHTS, NORMS = MEASURES = ("weights", "norms")
