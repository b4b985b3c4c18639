"""The agent CLIs that tfx knows: one row each, how to find them and which version they are."""
