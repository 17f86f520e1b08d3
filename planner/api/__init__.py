"""HTTP over one project: `/api/v1`, its jobs, and the door at which pages are mounted (see `app.py`)."""
