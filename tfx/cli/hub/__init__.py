"""`tfx hub`: the daemon's life and the operations, one module for each kind of thing.

Re-exports nothing; `commands.py` holds the tree.
"""
