"""Requests and responses of the hub, by what they are about; re-exports nothing."""
