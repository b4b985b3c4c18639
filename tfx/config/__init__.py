"""Surgical editors of users' files and the reader of tfx's own configuration."""
