"""`tfx setup`: the wanted state made so, previewed, removed, reverted and listed."""
