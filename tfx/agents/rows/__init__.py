"""One module per agent whose row was tried with the real client, and one for all the others."""
