"""What schedulers such as Airflow and Dagster ask of a project's state."""
