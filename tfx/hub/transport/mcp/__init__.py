"""MCP in front of the operations: both eras, stateless; no rules and no SQL (H-33)."""
