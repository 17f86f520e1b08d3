"""Who outside a project reads what it shows: the tables that each project publishes and reads, and their meeting."""
