"""Which heads of a translation model align words?"""
