"""The hub: one local daemon, one event log, one SQLite file; this package re-exports nothing."""
