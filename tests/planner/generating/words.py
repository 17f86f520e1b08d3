"""Projects as files, in words that a parser's tree does not tell apart: what Spark reads is the text.

Columns get names that must be quoted, queries begin with FROM, keys of a grouping stand with a comma or without.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.files.model_file import parse_model
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.spark_text import spark_text
from tests.planner.building import NOW, external, project

from . import Case, generate_nodes
from .data import TABLES
from .graphs import Node, Nodes

Names = Mapping[str, str]
ODD_NAMES = ("a-b", "a.b", "c d", "select", "x`y", "Ünï", "1st", "from", "@end", "n" * 120, "'q'", 'a"b', "a--b", "$1")
BARE_NAMES = ("values", "fetch", "grant", "minus", "offset")  # Spark reads them as names
FIXED = frozenset(("current_user", "current_date"))
CLAUSES = frozenset(("WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY",
                     "LIMIT", "OFFSET"))  # fmt: skip
SET_WORDS = frozenset(("UNION", "EXCEPT", "INTERSECT", "MINUS", "QUALIFY"))
SETS = re.compile(r"GROUP BY GROUPING SETS \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)")
ROLLED = re.compile(r"GROUP BY (ROLLUP|CUBE) \(((?:[^()]|\([^()]*\))*)\)")
WRAPPERS = ("FROM ({}) |> SELECT *", "SELECT * FROM ({}) |> WHERE TRUE", "({})", "FROM ({}) SELECT *")
INNER = re.compile(r"\(((?:[^()]|\([^()]*\))+)\)")


def generate_words(seed: int) -> Case:
    """Return a project of files and an edit of one or two of its models, both in words of their own."""
    rng = random.Random(seed)  # noqa: S311 # reproducible, not secret
    old, new, edits, declared = generate_nodes(rng)
    names = choose_names(rng) if not declared and rng.random() < 0.6 else {}
    before = {node.name: write_text(rng, node.sql, names) for node in old}
    after = dict(before)
    words = list(edits)
    for one, two in zip(old, new, strict=True):
        if two.sql != one.sql:
            after[two.name] = write_text(rng, two.sql, names)
        elif rng.random() < 0.25:
            after[two.name] = write_text(rng, two.sql, names)
            words += [f"{two.name}: in other words"] * (after[two.name] != before[two.name])
    sides = ((old, before), (new, after))
    first, second = (build_files(nodes, texts, names, declared) for nodes, texts in sides)
    return Case(seed, first, second, tuple(words))


def choose_names(rng: random.Random) -> Names:
    """Return other names for some columns of the external tables."""
    columns = sorted({name for table in TABLES.values() for name in table} - FIXED)
    picked = rng.sample(columns, rng.choice((2, 3, 5)))
    return dict(zip(picked, rng.sample((*ODD_NAMES, *BARE_NAMES), len(picked)), strict=True))


def write_text(rng: random.Random, sql: str, names: Names) -> str:
    """Return a query under other names of columns, in words that are chosen at random."""
    tree = spark_tree(sql).copy()
    for identifier in list(tree.find_all(exp.Identifier)):
        if new := names.get(identifier.name.lower()):
            identifier.replace(exp.to_identifier(new, quoted=True))
    text = spark_text(tree)
    for name in BARE_NAMES:
        text = text.replace(f"`{name}`", name) if rng.random() < 0.5 else text
    text = SETS.sub(lambda match: _write_sets(rng, match), text)
    text = ROLLED.sub(lambda match: _write_rolled(rng, match), text)
    if rng.random() < 0.3:
        text = move_from(rng, text)
    return rng.choice(WRAPPERS).format(text) if rng.random() < 0.06 else text


def _write_sets(rng: random.Random, match: re.Match[str]) -> str:
    keys = ", ".join(dict.fromkeys(INNER.findall(match[1])))
    sets = f"GROUPING SETS ({match[1]})"
    return "GROUP BY " + rng.choice((sets, f"{keys} {sets}", f"{keys}, {sets}")) if keys else match[0]


def _write_rolled(rng: random.Random, match: re.Match[str]) -> str:
    rolled = f"{match[1]} ({match[2]})"
    return "GROUP BY " + rng.choice((rolled, f"{match[2]} WITH {match[1]}", f"{match[2]}, {rolled}"))


def move_from(rng: random.Random, text: str) -> str:
    """Return the text with FROM before SELECT, in the query or in one of its subqueries."""
    tokens = sqlglot.tokenize(text, read="spark")
    starts = [index for index, token in enumerate(tokens) if token.token_type == TokenType.SELECT]
    rng.shuffle(starts)
    for start in starts:
        if moved := _move_from(text, tokens[start:]):
            return moved
    return text


def _move_from(text: str, tokens: list[Token]) -> str:
    depth, from_, after, end = 0, None, None, len(text)
    for index, token in enumerate(tokens):
        word = "" if token.token_type == TokenType.IDENTIFIER else token.text.upper()
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth < 0:
            end = token.start
            break
        if depth or not index:
            continue
        if word in SET_WORDS or (word == "SELECT" and index):
            return ""
        if word == "FROM" and tokens[index - 1].text.upper() != "DISTINCT" and from_ is None:
            from_ = token.start
        elif from_ is not None and after is None and word in CLAUSES:
            after = token.start
    if from_ is None:
        return ""
    after = end if after is None else after
    select, source = text[tokens[0].start : from_].strip(), text[from_:after].strip()
    return f"{text[: tokens[0].start]}{source} {select} {text[after:]}"


def build_files(nodes: Nodes, texts: Names, names: Names, declared: Mapping[str, int]) -> dict[str, Model]:
    """Return the models as they are read from files, and the external tables under them."""
    tables = (
        replace(
            external(name, ""),
            columns=tuple(
                Column(names.get(column, column).lower(), "string") for column in [*columns][: declared.get(name)]
            ),
            open_columns=name in declared,
        )
        for name, columns in TABLES.items()
    )
    return project(*tables, *(read_file(node, texts[node.name], names) for node in nodes))


def read_file(node: Node, text: str, names: Names) -> Model:
    kind = str(node.kind)
    time = quote_column(names.get("d", "d"))
    if node.kind is Kind.INCREMENTAL_BY_TIME_RANGE:
        kind += f" (time_column {time})"
    cut = ", ".join(quote_column(names.get(column, column)) for column in node.cut)
    parts = [f"name {node.name}", f"kind {kind}", *([f"partitioned_by ({cut})"] if cut else []), "start '2026-01-01'"]
    model, _ = parse_model(f"MODEL ({', '.join(parts)});\n{text}\n", f"models/{node.name}.sql", Defaults(NOW))
    assert model is not None
    return model
