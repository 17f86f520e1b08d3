"""The parts of SQL that a project may not use anywhere, because they access more than the tables that they name.

A pull request's SQL runs with the rights of Spark's process. This module refuses programs, statements within a query,
and syntax that hides which table or column is read. Functions are judged in `spark_registry.py`.
"""

from sqlglot import exp

from mergeplan.planner.parsing.sql.spark_registry import FILES_HINT


def find_forbidden(tree: exp.Expr) -> tuple[str, str] | None:
    """Return the token at which SQL accesses anything other than tables, and the error message, or None."""
    for node in tree.find_all(exp.QueryTransform, exp.CTE, exp.Anonymous, exp.ReadParquet):
        if isinstance(node, exp.QueryTransform):
            return "using", "`TRANSFORM ... USING` runs a program on the machine and is not allowed."
        if isinstance(node, exp.ReadParquet):  # Spark's SQL for it names the files as a table
            return "read_parquet", f"`read_parquet` reads files, and a model of mergeplan reads tables. {FILES_HINT}"
        if isinstance(node, exp.CTE):
            if isinstance(node.this, exp.Insert | exp.Update | exp.Delete | exp.Merge):
                return "with", f"`{node.alias}` is not a query: a CTE must be a SELECT."
        elif node.name.lower() == "identifier":
            read = "table" if isinstance(node.parent, exp.Table) else "column"
            return "identifier", f"`IDENTIFIER(...)` hides which {read} is read: name the {read}."
    return None
