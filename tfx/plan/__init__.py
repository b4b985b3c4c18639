"""The plan engine: decides what is not yet so, applies it, records it, takes it back."""
