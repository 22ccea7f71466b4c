"""What is behind a number? Sentences, attention, tokens, and the best head of each relation."""
