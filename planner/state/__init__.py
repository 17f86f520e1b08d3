"""What mergeplan remembers between two commands: environments, intervals, plans and promotions, in a database."""
