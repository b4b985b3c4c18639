"""What may be done with tasks and leases, and by whom."""
