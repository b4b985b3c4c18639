"""`tfx hub bridge`: the stdio MCP server that agents run in front of the hub (K-26, K-27)."""
