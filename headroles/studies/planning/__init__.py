"""How many examples does it take?"""
