"""Rules of the hub: who may do what, and what follows; this package re-exports nothing."""
