"""What a plan promises of each model, and the queries that hold it to that."""
