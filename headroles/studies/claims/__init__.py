"""Claims of papers about attention heads, tested as hypotheses on a model."""
