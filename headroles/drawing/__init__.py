"""Figures and HTML pages: the kit they are made with. It knows no study."""
