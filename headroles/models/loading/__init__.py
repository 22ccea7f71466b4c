"""Loading of encoders and tokenizers, and the folders of models that headroles writes."""
