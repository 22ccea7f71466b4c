"""Heads: their projections, gates and removal, and the training of what is left."""
