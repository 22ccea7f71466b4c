"""Models: the only package that knows transformers' internals."""
