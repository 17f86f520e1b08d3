"""A limit of the values in a YAML file after its aliases are expanded: dbt copies and renders every value."""

from typing import Any

VALUES_MAX = 1_000_000  # as for files that mergeplan reads itself


def limit_yaml() -> None:
    """Refuse a file with more values, whichever loader of this process reads it from now on."""
    import yaml

    constructor: Any = yaml.constructor.BaseConstructor
    construct_document = constructor.construct_document

    def construct_limited(self: Any, node: yaml.Node) -> Any:
        if count_values(node) > VALUES_MAX:
            problem = f"the file has more than {VALUES_MAX} values when its aliases are expanded"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return construct_document(self, node)

    constructor.construct_document = construct_limited


def count_values(node: Any) -> int:
    """Return how many values a node contains, aliases repeated; more than any limit for a node that contains itself."""
    counts: dict[int, int] = {}
    waiting = [node]
    while waiting:
        node = waiting[-1]
        parts = (
            []
            if isinstance(node.value, str)
            else [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        )
        new = [part for part in parts if id(part) not in counts] if counts.get(id(node)) is None else []
        counts.setdefault(id(node), VALUES_MAX + 1)  # until its parts are counted
        if new:
            waiting += new
            continue
        waiting.pop()
        if counts[id(node)] == VALUES_MAX + 1:
            counts[id(node)] = 1 + sum(counts[id(part)] for part in parts)
    return counts[id(node)]
