"""How small can a model be? Pruning, its curves, fine-tuning with heads masked, learnt gates."""
