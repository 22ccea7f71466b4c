"""What are heads worth to a task? Importance, and the loss without heads."""
