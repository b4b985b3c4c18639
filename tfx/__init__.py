"""tfx: one described state for every coding-agent CLI on a machine."""

__version__ = "0.2.0"
