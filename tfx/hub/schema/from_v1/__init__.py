"""The step from triflux's bus (version 1) to the log: every row enters by an `imported` event.

Knows the two schemas; needs the SQL functions `is_utf8`, `event_id`, `json_texts`, `json_clean`
and `human_digest` on the connection (K-36, K-40).
"""
