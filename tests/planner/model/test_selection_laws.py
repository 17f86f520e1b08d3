"""Laws of selection, over random graphs."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.graph import Graph
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Metadata
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import select

TAGS = ("hot", "cold")
# many a random selector names what its graph does not have
LAWS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of three to eight models in two schemas, some of them tagged."""
    names = [f"{draw(st.sampled_from('st'))}.m{number}" for number in range(draw(st.integers(3, 8)))]
    parents, models = {}, {}
    for index, name in enumerate(names):
        read = tuple(sorted(draw(st.sets(st.sampled_from(names[:index]))))) if index else ()
        tags = tuple(draw(st.sets(st.sampled_from(TAGS))))
        parents[name], models[name] = (
            read,
            Model(name, Kind.VIEW, "", 1, "", depends_on=read, metadata=Metadata(tags=tags)),
        )
    return Graph(models, parents)


ATOMS = st.sampled_from(["s.*", "t.*", "*.m0", "*.m1", "*.m2", "tag:hot", "tag:cold", "*"])
TERMS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({})&({})".format, inner, inner),
        st.builds("({}) | ({})".format, inner, inner),
        st.builds("^({})".format, inner),
        st.builds("+({})".format, inner),
        st.builds("({})+".format, inner),
    ),
    max_leaves=4,
)


def find(graph: Graph, selector: str) -> frozenset[str]:
    """What a selector selects, nothing included; a name that no model has makes the example one of another graph."""
    try:
        return select(graph, [selector])
    except RequestError as error:
        assume(error.message == f"`{selector}` selects no model.")
        assume(selector not in ("s.*", "t.*", "tag:hot", "tag:cold"))
        return frozenset()


@LAWS
@given(graphs(), TERMS, TERMS)
def test_operators_are_those_of_sets(graph: Graph, a: str, b: str) -> None:
    one, other, every = find(graph, a), find(graph, b), frozenset(graph.models)

    assert find(graph, f"({a}) | ({b})") == one | other
    assert find(graph, f"({a}) & ({b})") == one & other
    assert find(graph, f"^({a})") == every - one
    assert find(graph, f"^(({a}) | ({b}))") == find(graph, f"^({a}) & ^({b})")


@LAWS
@given(graphs(), TERMS, TERMS)
def test_several_selectors_are_their_union(graph: Graph, a: str, b: str) -> None:
    one, other = find(graph, a), find(graph, b)
    assume(one and other)

    assert select(graph, [a, b]) == select(graph, [b, a, b]) == one | other


@LAWS
@given(graphs(), TERMS)
def test_a_plus_only_adds_and_adds_all_at_once(graph: Graph, a: str) -> None:
    up, down = find(graph, f"+({a})"), find(graph, f"({a})+")

    assert up >= find(graph, a) <= down
    assert find(graph, f"+({a})+") == up | down
    assert find(graph, f"+(+({a}))") == up
    assert find(graph, f"(({a})+)+") == down


@LAWS
@given(graphs(), TERMS, TERMS)
def test_reaching_is_monotone_and_spreads_over_unions(graph: Graph, a: str, b: str) -> None:
    assert find(graph, f"+(({a}) | ({b}))") == find(graph, f"+({a})") | find(graph, f"+({b})")
    assert find(graph, f"+(({a}) & ({b}))") <= find(graph, f"+({a})")


@LAWS
@given(graphs())
def test_upstream_and_downstream_are_each_others_mirror(graph: Graph) -> None:
    for one in graph.models:
        for other in graph.models:
            assert (other in select(graph, [f"+{one}"])) == (one in select(graph, [f"{other}+"]))
