"""What changed? Score sets of one model before and after fine-tuning."""
