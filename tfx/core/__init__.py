"""The machine: each module is the only door to its part."""
