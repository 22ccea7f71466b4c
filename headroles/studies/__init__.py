"""Studies: a package for each question, with its options, table, figures and page."""
