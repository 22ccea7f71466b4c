"""Queries and keys that the heads of a layer share."""
