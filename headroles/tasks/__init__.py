"""Tasks that models were trained for: losses of examples with labels or masked words."""
