"""What Dagster shows and runs; the parts that need no Dagster are tested here, the others in test_real_dagster.py."""
