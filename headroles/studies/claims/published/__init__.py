"""Claims of papers, one file each."""
