"""schema: what mergeplan's JSON, its catalog and config.yaml look like, for programs and editors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from mergeplan.planner.contract.catalog import catalog_schema
from mergeplan.planner.contract.config_schema import config_schema
from mergeplan.planner.contract.schedule import schedule_schema
from mergeplan.planner.contract.wire import lines_schema

DOCUMENTS = ("plan", "catalog", "schedule", "config")


def schema_command(config: Callable[[], dict[str, Any]]) -> click.Command:
    """The verb; who knows more of config.yaml than the planner gives its own schema of it."""

    @click.command("schema")
    @click.argument("document", metavar="|".join(DOCUMENTS), type=click.Choice(DOCUMENTS))
    def schema(document: str) -> int:
        """Print the JSON Schema of a JSON line (plan), of the catalog, of a schedule, or of config.yaml (config).

        \b
        mergeplan schema plan
        mergeplan schema catalog
        mergeplan schema schedule
        mergeplan schema config > .mergeplan/config.schema.json
        """
        schemas = {"plan": lines_schema, "catalog": catalog_schema, "schedule": schedule_schema, "config": config}
        click.echo(json.dumps(schemas[document](), indent=2))
        return 0

    return schema


schema = schema_command(config_schema)
