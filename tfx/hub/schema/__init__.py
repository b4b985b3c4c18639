"""Schema texts, their identity and the known versions; this package re-exports nothing."""
