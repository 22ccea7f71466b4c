"""Scoring: stream examples through an encoder and read their attention into HeadScores."""
