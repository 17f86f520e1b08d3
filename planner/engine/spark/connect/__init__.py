"""Spark Connect: its session, and the proxy that admits an isolated child's requests."""
