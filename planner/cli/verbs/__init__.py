"""The verbs that plan, run and manage environments and the state."""
