"""What people come for: a room for each question, with its options, table, figures and page."""
