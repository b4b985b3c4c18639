"""`tfx task` and `tfx lease`: the board of a workspace and who holds what of it.

Re-exports nothing; `commands.py` holds the two trees.
"""
