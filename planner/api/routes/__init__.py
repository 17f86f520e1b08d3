"""The endpoints below `/api/v1`, a file for each sort of thing."""

from mergeplan.planner.api.routes import environments, models

ROUTERS = (models.router, environments.router)
