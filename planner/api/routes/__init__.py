"""The endpoints below `/api/v1`, a file for each sort of thing."""

from mergeplan.planner.api.routes import environments, jobs, models, plans, work

ROUTERS = (models.router, environments.router, plans.router, work.router, jobs.router)
