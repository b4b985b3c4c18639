"""Run a role's prompt through the agent CLI that suits it, and say how it went."""
