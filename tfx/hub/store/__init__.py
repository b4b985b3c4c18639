"""SQL and nothing but SQL: log, projections, writer; this package re-exports nothing."""
