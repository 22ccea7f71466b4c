"""Tools for figures and HTML pages; they know no study."""
