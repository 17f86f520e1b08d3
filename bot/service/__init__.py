"""The processes: the service and the GitHub Action."""
