"""Applying a plan: create tables, backfill, audit, promote; and the janitor that cleans up after it."""
