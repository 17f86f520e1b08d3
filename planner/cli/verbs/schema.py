"""schema: what mergeplan's JSON, its catalog and the project's YAML look like, for programs and editors."""

import json
from collections.abc import Callable
from typing import Any

import click

from mergeplan.planner.contract.catalog import catalog_schema
from mergeplan.planner.contract.config_schema import config_schema
from mergeplan.planner.contract.schedule import schedule_schema
from mergeplan.planner.contract.wire import lines_schema
from mergeplan.planner.lsp.yaml_files.file_schemas import FILE_SCHEMAS

DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "plan": lines_schema,
    "catalog": catalog_schema,
    "schedule": schedule_schema,
    **FILE_SCHEMAS,
}


def schema_command(config: Callable[[], dict[str, Any]]) -> click.Command:
    """Return the verb; a caller that knows more of config.yaml than the planner passes its own schema of it."""

    schemas = {**DOCUMENTS, "config": config}

    @click.command("schema")
    @click.argument("document", metavar="|".join(schemas), type=click.Choice([*schemas]))
    def schema(document: str) -> int:
        """Print the JSON Schema of a JSON line (plan), of the catalog, of a schedule, or of a YAML file of the project.

        \b
        mergeplan schema plan
        mergeplan schema catalog
        mergeplan schema schedule
        mergeplan schema tests
        mergeplan schema config > .mergeplan/config.schema.json
        """
        click.echo(json.dumps(schemas[document](), indent=2))
        return 0

    return schema


schema = schema_command(config_schema)
