"""The tools: questions about a project, with answers in the published contract. None starts Spark or writes."""

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mergeplan.planner.agents.answers import MOST, dump_row, page_rows
from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.contract.catalog import CatalogModelRow
from mergeplan.planner.contract.from_catalog import model_row
from mergeplan.planner.contract.from_events import lint_line
from mergeplan.planner.contract.from_history import audit_history_row, environment_row, revision_row, rollback_view
from mergeplan.planner.contract.from_plan import diff_row, plan_view
from mergeplan.planner.contract.from_tables import lineage_result
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import graph_of
from mergeplan.planner.model.selection import strip_default_catalog
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.project.lineage import lineage_of
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.unopened import lint_refusals
from mergeplan.planner.session.use_cases.audits import audit_history
from mergeplan.planner.session.use_cases.catalog import make_catalog
from mergeplan.planner.session.use_cases.diff import find_impact, plan_difference
from mergeplan.planner.session.use_cases.environments import plan_rollback
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.use_cases.lint import lint_project
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, parse_environment_name

Json = dict[str, Any]
RESULTS = 1000  # of audits, the newest, that are looked through
SHORT = ("name", "kind", "owner", "description", "tags", "path", "line", "schedule", "parents", "readers")


@dataclass(frozen=True)
class Tools:
    """The tools over one project; each call reads its files again."""

    settings: SessionSettings

    def models(self, search: str = "", select: str = "", limit: int = 50, offset: int = 0) -> Json:
        """List models: those whose name, owner, tags, description or columns hold every word of `search`.

        `select` is a selector: `shop.*`, `tag:finance`, `+shop.orders`, `shop.orders+`.
        """
        words = search.lower().split()
        with self._open_workspace() as work:
            chosen = _select_models(work, select)
            catalog = make_catalog(work, PROD)
        rows = [model_row(model) for name, model in catalog.models.items() if name in chosen]
        matches = [row for row in rows if all(word in _search_text(row) for word in words)]
        unopened = [str(file.place) for file in catalog.unopened]
        listed = [row.model_dump(mode="json", include=set(SHORT)) for row in page_rows(matches, limit, offset)]
        return {"total": len(matches), "offset": offset, "models": listed, "unopened_files": unopened}

    def model(self, name: str, environment: str = PROD) -> Json:
        """One model: columns with types, descriptions and lineage, queries, schedule, tests, audits, intervals."""
        with self._open_workspace() as work:
            called = _model_name(work, name)
            return dump_row(model_row(make_catalog(work, parse_environment_name(environment)).models[called]))

    def lineage(self, target: str, downstream: bool = False, limit: int = MOST) -> Json:
        """Show what a model or column (`shop.orders.amount`) is made from; with `downstream`, what a change affects."""
        with self._open_workspace() as work:
            models, catalog = work.project.models, work.project.catalogs.default
            lineage = lineage_of(models, strip_default_catalog(target, catalog), downstream=downstream)
        answer = dump_row(lineage_result(lineage, models))
        header: Json = {key: answer[key] for key in ("model", "column", "direction", "unfollowed") if key in answer}
        edges = answer["edges"]
        return {**header, "total": len(edges), "edges": edges[: max(1, min(limit, MOST))]}

    def environments(self) -> Json:
        """List the environments: revision, when promoted, models, expiry."""
        with self._open_workspace() as work:
            return {"environments": [dump_row(environment_row(one)) for one in work.store.environments.all()]}

    def history(self, environment: str = PROD, limit: int = 50, offset: int = 0) -> Json:
        """List what an environment has shown so far, newest first: plans, rollbacks, who and why."""
        with self._open_workspace() as work:
            revisions = work.store.environments.history(work.environment(parse_environment_name(environment)).name)
            return {
                "total": len(revisions),
                "revisions": [dump_row(revision_row(r)) for r in page_rows(revisions, limit, offset)],
            }

    def explain(self, environment: str = PROD, model: str = "", limit: int = 50, offset: int = 0) -> Json:
        """How the files differ from an environment: each changed model's category, rule, reason, and diff."""
        with self._open_workspace() as work:
            rows = [diff_row(change) for change in plan_view(plan_difference(work, environment), {}).models]
            if model:
                called = _model_name(work, model)
                rows = [row for row in rows if row.name == called]
        return {"total": len(rows), "changes": [dump_row(row) for row in page_rows(rows, limit, offset)]}

    def impact(self, path: str, text: str, environment: str = PROD, limit: int = 50, offset: int = 0) -> Json:
        """Show what a proposed text of a SQL file below `models/` would change, without writing it.

        Each model with its category and reason, the time that would be computed, and its columns.
        """
        with self._open_workspace() as work:
            view = plan_view(find_impact(work, environment, path, text), {})
        changes = [
            change.model_dump(mode="json", exclude={"estimate"}) for change in page_rows(view.models, limit, offset)
        ]
        blockers = [dump_row(blocker) for blocker in view.blockers]
        exposures = [dump_row(exposure) for exposure in view.exposures]
        return {"total": len(view.models), "changes": changes, "blockers": blockers, "exposures": exposures}

    def lint(self, select: str = "", limit: int = 50, offset: int = 0) -> Json:
        """List the rules of the linter that models break, each with its file and line; `select` is a selector."""
        with self._open_workspace() as work:
            report = lint_project(work, [select] if select else [], lint_refusals(work.project))
        violations = [dump_row(lint_line(violation)) for violation in page_rows(report.violations, limit, offset)]
        return {"total": len(report.violations), "ok": report.ok, "violations": violations}

    def rollback(self, environment: str = PROD, revision: int | None = None) -> Json:
        """Show what a rollback of an environment would move and what its tables would lack; nothing is changed.

        Without a `revision` it is to the one before. `history` lists them.
        """
        with self._open_workspace() as work:
            plan = plan_rollback(work, parse_environment_name(environment), revision)
        refusal = plan.refusal
        return {"possible": refusal is None, "refusal": str(refusal or ""), "rollback": dump_row(rollback_view(plan))}

    def audits(
        self, environment: str = PROD, select: str = "", failed: bool = False, limit: int = 50, offset: int = 0
    ) -> Json:
        """List what the audits of an environment found in the last three months, also if they passed, newest first.

        Of the newest 1,000 results; `select` is a selector of models, `failed` leaves out what passed.
        """
        with self._open_workspace() as work:
            shown = work.environment(parse_environment_name(environment))
            results = audit_history(work, shown, [select] if select else [], RESULTS)
        rows = [result for result in results if not (failed and result.outcome == "passed")]
        return {
            "total": len(rows),
            "audits": [dump_row(audit_history_row(row)) for row in page_rows(rows, limit, offset)],
        }

    def _open_workspace(self) -> closing[Workspace]:
        return closing(Workspace(self.settings, "metadata", datetime.now(UTC), ignore_event, only_looks=True))


def _select_models(work: Workspace, selector: str) -> frozenset[str]:
    graph = graph_of(work.project.models)
    if not selector:
        return frozenset(graph.order)
    return select_by_request(work.project, [selector], graph)


def _model_name(work: Workspace, name: str) -> str:
    called = strip_default_catalog(name.lower(), work.project.catalogs.default)
    if called not in work.project.models:
        work.project.refused.check_model(called)
        raise RequestError(f"There is no model `{name[:200]}`.", hint=did_you_mean(called, work.project.models))
    return called


def _search_text(row: CatalogModelRow) -> str:
    columns = (column.name for column in row.columns or ())
    return " ".join((row.name, row.owner, row.description, *row.tags, *columns)).lower()
