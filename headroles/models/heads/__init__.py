"""Heads: their projections, gates and removal, and the training of the remaining heads."""
