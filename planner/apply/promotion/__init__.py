"""Promotion and rollback: swap an environment's views, undo, recover."""
