"""Attention weights and norms of a model, or attention of the user's own."""
