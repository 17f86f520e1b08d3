"""The endpoints below `/api/v1`, a file for each sort of thing."""

from mergeplan.planner.api.routes import checks, environments, files, jobs, lineage, models, plans, project, work

ROUTERS = tuple(module.router for module in (project, models, lineage, environments, plans, work, checks, jobs, files))
