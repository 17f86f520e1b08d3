"""Plans of Spark's as data: two that mean the same in one form, and what differs between others."""
