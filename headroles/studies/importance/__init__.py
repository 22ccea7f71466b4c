"""How much do heads matter to a task? Importance, and the loss without heads."""
