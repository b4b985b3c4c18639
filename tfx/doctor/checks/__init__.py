"""The checks by family; each module ends in one explicit CHECKS tuple (D-25)."""
