"""How much do heads share? Redundancy, and collaborative query and key projections."""
