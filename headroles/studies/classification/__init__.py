"""Which roles do heads have? Role tables, their figures, and their page."""
