"""Testing: from hypotheses about means to evidence, answers and notes; no model, no corpus."""
