"""What SQL of a project may not do, wherever it stands: reach past the tables that it names.

A pull request's SQL runs with the rights of Spark's process. Functions that call Java, run programs, or open files,
addresses and stores of secrets are refused, and so is what hides which table or column is read.
"""

from __future__ import annotations

from sqlglot import exp

JAVA = frozenset({"java_method", "reflect", "try_reflect"})
OUTSIDE = frozenset(
    """secret try_secret list_secrets read_files cloud_files read_kafka read_kinesis read_pubsub read_pulsar
    remote_query http_request table_changes table_changes_by_path""".split()
)


def reaching(tree: exp.Expr) -> tuple[str, str] | None:
    """The token at which SQL accesses something other than tables, and the error message; None if it does not."""
    for node in tree.find_all(exp.QueryTransform, exp.CTE, exp.Func):
        name = (node.name if isinstance(node, exp.Anonymous) else node.key).lower()
        if isinstance(node, exp.QueryTransform):
            return "using", "`TRANSFORM ... USING` runs a program on the machine and is not allowed."
        if isinstance(node, exp.CTE):
            if isinstance(node.this, exp.Insert | exp.Update | exp.Delete | exp.Merge):
                return "with", f"`{node.alias}` is not a query: a CTE must be a SELECT."
        elif name in JAVA:
            return name, f"`{name}` runs arbitrary Java code and is not allowed."
        elif name in OUTSIDE:
            return name, f"`{name}` reads something other than tables and is not allowed."
        elif name == "identifier":
            read = "table" if isinstance(node.parent, exp.Table) else "column"
            return name, f"`IDENTIFIER(...)` hides which {read} is read: name the {read}."
    return None
