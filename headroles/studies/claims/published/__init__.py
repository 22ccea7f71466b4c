"""Published claims, a module for each paper."""
