"""HTTP in front of the services: decode, one service call, encode; no rules and no SQL."""
