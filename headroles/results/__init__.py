"""Results: what shows, saves, loads and exports itself."""
