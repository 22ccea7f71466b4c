"""The one loop that runs a model over batches, sorted by length, smaller if memory runs out."""
