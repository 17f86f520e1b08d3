"""Backfill: create the tables of a plan and write their batches."""
