"""How small can a model be? Pruning, its curves, fine-tuning with masked heads, learnt gates."""
