"""Move the hub's database from schema to schema, offline, behind a verified backup.

One worker process does all database work; the parent never opens a database (U-25, U-26).
"""
