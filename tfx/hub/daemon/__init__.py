"""The life of the hub's process: start, stop, status, logs, service.

Knows nothing of messages; `probe` is the one answer to "is it running" (H-14).
"""
