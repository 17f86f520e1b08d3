"""A promotion that a crash cut off: every verb finishes it before it decides anything, or says that it is there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cli.main import VERBS
from mergeplan.planner.engine.protocol import ViewText
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import QueryError
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.environments import Cause, HistoryAction
from mergeplan.planner.state.store import StateStore
from tests.planner.cli.conftest import TODAY, CommandLine, clear_tables
from tests.planner.engines import Double
from tests.planner.shop import rows, write_shop

pytestmark = pytest.mark.prove

A = "MODEL (name shop.a, kind VIEW);\nSELECT {} AS x"
B = "MODEL (name shop.b, kind VIEW);\nSELECT {} AS x"
NOTHING = dict.fromkeys(("items", "daily", "total", "shown", "apart"), "")
AT = ("--execution-time", TODAY)
# A verb may stand here several times: by what it does to an environment that is half promoted.
FINISH: dict[str, tuple[str, ...]] = {
    "plan": ("plan", "--auto-apply", *AT),
    "plan without applying": ("plan", "--no-prompts", *AT),
    "plan of another environment": ("plan", "dev", "--auto-apply", *AT),
    "apply": ("apply", "PLAN"),
    "run": ("run", *AT),
    "rollback": ("rollback", "prod"),
    "invalidate": ("invalidate", "dev"),
    "janitor": ("janitor",),
    "state import": ("state", "import", "-i", "out.json", "--replace", "--no-confirm"),
    "state takeover": ("state", "takeover", "0123456789abcdef"),
}
TELL: dict[str, tuple[str, ...]] = {
    "plan --explain": ("plan", "--explain", *AT),
    "environments": ("environments",),
    "environments prod": ("environments", "prod"),
    "history": ("history", "prod"),
    "diff": ("diff", "prod"),
    "adopt": ("adopt",),
    "audit": ("audit",),
    "table_diff": ("table_diff", "prod:dev"),
    "data_diff": ("data_diff", "dev"),
    "physical_plan": ("physical_plan", "dev"),
    "table_diff of tables": ("table_diff", "shop.a:shop.b"),
    "fetchdf": ("fetchdf", "select 1"),
    "create_test": ("create_test", "shop.b", "--overwrite"),
    "info": ("info",),
    "freshness": ("freshness",),
    "docs": ("docs", "--output", "catalog.json", "--format", "json"),
    "migrate": ("migrate",),
    "janitor --dry-run": ("janitor", "--dry-run"),
    "state export": ("state", "export", "-o", "other.json", "--no-confirm"),
}
WITHOUT_STATE = {  # they look at files, or at Spark's own tables, and at no environment
    "init", "test", "format", "lint", "render", "dag", "lineage", "create_external_models", "clean", "completion",
    "warm", "schema", "lsp",
    "doctor",  # says it in a line of its own
}  # fmt: skip
OTHERS = {"ui", "mcp", "schedule"}  # pages and tools are verbs of their own; a document of whole promotions alone


class Died(BaseException):
    """The process ends here."""


class Dying(Double):
    """A Spark whose process dies when a view is to be swapped."""

    def swap_view(self, view: ViewText) -> bool:
        if view.name.startswith("shop."):
            raise Died
        swapped: bool = self._engine.catalog.swap_view(view)
        return swapped


@pytest.fixture(scope="module")
def crash_scene(shared_engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Prod at 1, `dev` at 1 and the promotion of 2 to prod cut off before its first view; the state is kept aside."""
    root = tmp_path_factory.mktemp("crashed")
    write_shop(root, **NOTHING, a=A.format(1), b=B.format(1))
    with clear_tables(shared_engine):
        mergeplan = CommandLine(root, shared_engine)
        assert mergeplan("plan", "--auto-apply", *AT).code == 0
        assert mergeplan("plan", "dev", "--auto-apply", "--include-unmodified", *AT).code == 0
        mergeplan.write("models/a.sql", A.format(2))
        mergeplan.write("models/b.sql", B.format(2))
        saved = mergeplan("plan", "dev", "--no-prompts", "--output", "json", *AT).result["plan"]["id"]
        mergeplan.write("saved", saved)
        assert mergeplan("state", "export", "-o", "out.json", "--no-confirm").code == 0
        mergeplan.engine = Dying(shared_engine)  # type: ignore[assignment]
        with pytest.raises(Died):
            mergeplan("plan", "--auto-apply", *AT)
        mergeplan.engine = shared_engine
        shutil.copy(root / ".mergeplan/state.db", root / "aside.db")
        yield mergeplan


@pytest.fixture
def tear_state(crash_scene: CommandLine) -> Callable[..., CommandLine]:
    """Makes the crash be so far: `moved` views show the new tables, and the journal knows of `told` of them."""

    def tear(moved: str = "a", told: str = "") -> CommandLine:
        for file in (crash_scene.root / ".mergeplan").glob("state.db*"):
            file.unlink()
        shutil.copy(crash_scene.root / "aside.db", crash_scene.root / ".mergeplan/state.db")
        (pending,) = crash_scene.state.promotions.pending()
        assert crash_scene.engine is not None
        for name in ("a", "b"):
            old, new = (environment.snapshots[f"shop.{name}"].table for environment in (pending.old, pending.new))
            crash_scene.engine.catalog.swap_view(ViewText(old, "SELECT 1 AS x"))
            crash_scene.engine.catalog.swap_view(ViewText(new, "SELECT 2 AS x"))
            crash_scene.engine.catalog.swap_view(
                ViewText(f"shop.{name}", f"SELECT x FROM {new if name in moved else old}")
            )
        for name in told:
            with crash_scene.state.leases.hold("prod", "test") as lease:
                crash_scene.state.promotions.record_steps(lease, pending, [f"shop.{name}"])
        return crash_scene

    return tear


def view_values(mergeplan: CommandLine) -> list[object]:
    assert isinstance(mergeplan.engine, SparkEngine)
    return [rows(mergeplan.engine, f"SELECT x FROM shop.{name}")[0][0] for name in ("a", "b")]


def calls_saved(mergeplan: CommandLine, arguments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple((mergeplan.root / "saved").read_text() if argument == "PLAN" else argument for argument in arguments)


@pytest.mark.parametrize("verb", FINISH)
def test_a_verb_that_decides_finishes_it_first(verb: str, tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()

    ran = mergeplan(*calls_saved(mergeplan, FINISH[verb]))

    assert "The interrupted promotion of `prod` to revision 2 is finished: 2 views." in ran.out + ran.err
    assert mergeplan.state.promotions.pending() == ()
    assert "defect" not in ran.err
    if verb != "rollback":
        assert view_values(mergeplan) == [2, 2]


@pytest.mark.parametrize("verb", TELL)
def test_a_verb_that_looks_says_that_it_is_there(verb: str, tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()

    ran = mergeplan(*TELL[verb])

    told = "The promotion of `prod` to revision 2 was interrupted: its views may be of two revisions."
    assert told in ran.err.splitlines()[0]
    assert "defect" not in ran.err
    assert len(mergeplan.state.promotions.pending()) == 1
    assert view_values(mergeplan) == [2, 1]


def test_the_doctor_says_that_it_is_there(tear_state: Callable[..., CommandLine]) -> None:
    ran = tear_state()("doctor")

    assert ran.code == 1
    assert "wrong  `prod` to revision 2 was interrupted: `mergeplan plan` finishes it" in ran.out


@pytest.mark.parametrize(("moved", "told"), [("", ""), ("a", ""), ("a", "a"), ("ab", "a"), ("ab", "ab")])
def test_at_whatever_step_it_was_cut_off_the_same_plan_ends_it_and_says_so(
    moved: str, told: str, tear_state: Callable[..., CommandLine]
) -> None:
    mergeplan = tear_state(moved, told)

    ran = mergeplan("plan", "--auto-apply", "--output", "json", *AT)

    assert (ran.code, ran.result["plan"]["empty"]) == (0, True)
    assert ran.result["recovered"] == {"prod": ["shop.a", "shop.b"]}
    assert (view_values(mergeplan), mergeplan.state.promotions.pending()) == ([2, 2], ())


@pytest.mark.parametrize("verb", ["environments", "diff", "audit", "info", "fetchdf", "state export"])
def test_a_program_is_told_as_data(verb: str, tear_state: Callable[..., CommandLine]) -> None:
    ran = tear_state()(*TELL[verb], "--output", "json")

    assert ran.result["pending"] == {"prod": ["shop.a", "shop.b"]}
    assert ran.err == ""


def test_an_interrupted_rollback_is_finished_and_not_taken_further_back(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state("ab")
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    assert isinstance(mergeplan.engine, SparkEngine)
    mergeplan.engine, spark = Dying(mergeplan.engine), mergeplan.engine  # type: ignore[assignment]
    with pytest.raises(Died):
        mergeplan("rollback", "prod")
    mergeplan.engine = spark

    again = mergeplan("rollback", "prod", "--output", "json")

    assert (again.code, view_values(mergeplan)) == (0, [1, 1])
    assert again.result["promotion"]["revision"] == 3
    assert mergeplan.state.environments.get("prod").revision == 3


def test_a_drop_that_was_cut_off_is_done_when_it_is_asked_for_again(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()
    with mergeplan.state.leases.hold("dev", "crashed") as lease:
        dev = mergeplan.state.environments.get("dev")
        mergeplan.state.promotions.begin(lease, dev, Environment("dev"), Cause(action=HistoryAction.DROPPED))

    ran = mergeplan("invalidate", "dev")

    assert (ran.code, mergeplan.state.environments.get("dev").exists) == (0, False)
    assert "`dev` is gone" in ran.out
    assert mergeplan.state.promotions.pending() == ()


def test_one_in_another_environment_is_finished_too(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()
    prod = mergeplan.state.promotions.pending()[0].new
    with mergeplan.state.leases.hold("dev", "crashed") as lease:
        dev = mergeplan.state.environments.get("dev")
        new = Environment("dev", prod.snapshots, frozenset(prod.snapshots), naming=dev.naming)
        mergeplan.state.promotions.begin(lease, dev, new)

    ran = mergeplan("run", "--output", "json", *AT)

    assert ran.result["recovered"] == {
        "prod": ["shop.a", "shop.b"],
        "dev": ["shop__dev.a", "shop__dev.b"],
    }


def test_the_lease_of_a_process_that_has_died_does_not_count(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()
    died = subprocess.Popen(["true"])
    died.wait(30)
    hold_lease(mergeplan.state, died.pid)

    ran = mergeplan("plan", "--auto-apply", "--output", "json", *AT)

    assert ran.result["recovered"] == {"prod": ["shop.a", "shop.b"]}


def test_the_lease_of_a_living_process_is_waited_for_and_it_is_told_for_whom(
    tear_state: Callable[..., CommandLine],
) -> None:
    mergeplan = tear_state()
    alive = subprocess.Popen(["sleep", "600"])
    hold_lease(mergeplan.state, alive.pid)
    looked = mergeplan("environments")

    def end() -> None:
        alive.kill()
        alive.wait(30)

    ran = hearing(mergeplan, '"event":"waiting"', end, "plan", "--auto-apply", "--output", "json", *AT)

    assert "is under way, by somebody at work" in looked.err
    waited = next(line for line in ran.lines if line["event"] == "waiting")
    assert (waited["environment"], waited["for"]) == ("prod", "somebody at work")
    assert ran.result["recovered"] == {"prod": ["shop.a", "shop.b"]}


@pytest.mark.parametrize("gone", ["a new one", "the new ones", "all of them", "the state forgot a new one"])
def test_one_whose_tables_are_gone_is_undone_and_planned_anew(
    gone: str, tear_state: Callable[..., CommandLine]
) -> None:
    mergeplan = tear_state()
    (pending,) = mergeplan.state.promotions.pending()
    old, new = (
        [environment.snapshots[f"shop.{name}"].table for name in "ab"] for environment in (pending.old, pending.new)
    )
    assert mergeplan.engine is not None
    if gone == "the state forgot a new one":
        mergeplan.state.tables.forget(new[1:])
    else:
        for table in {"a new one": new[1:], "the new ones": new, "all of them": new + old}[gone]:
            mergeplan.engine.tables.drop(table)

    first = mergeplan("plan", "--auto-apply", "--output", "json", *AT)
    second = mergeplan("plan", "--auto-apply", "--output", "json", *AT)

    assert (first.code in (0, 4), second.code) == (True, 0)
    assert any(line["event"] == "undone" for line in first.lines)
    assert (view_values(mergeplan), mergeplan.state.promotions.pending()) == ([2, 2], ())


class Refusing(Double):
    """A Spark that swaps no view of prod."""

    def swap_view(self, view: ViewText) -> bool:
        raise QueryError(f"the catalog refuses {view.name}.")


@pytest.mark.parametrize("verb", ["plan", "plan of another environment", "run", "rollback"])
def test_while_spark_refuses_nothing_is_decided_and_the_next_verb_mends_it(
    verb: str, tear_state: Callable[..., CommandLine]
) -> None:
    mergeplan = tear_state()
    mergeplan.engine, spark = Refusing(mergeplan.engine), mergeplan.engine  # type: ignore[assignment]
    ran = mergeplan(*FINISH[verb])
    mergeplan.engine = spark

    told = "Error: The promotion of `prod` to revision 2 was interrupted, and can be neither finished nor undone now:"
    assert (ran.code, ran.err.startswith(told)) == (4, True)
    assert len(mergeplan.state.promotions.pending()) == 1
    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    assert view_values(mergeplan) == [2, 2]


def test_what_is_stuck_in_one_environment_does_not_stop_another(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state()
    mergeplan.engine, spark = Refusing(mergeplan.engine), mergeplan.engine  # type: ignore[assignment]
    ran = mergeplan("invalidate", "dev")
    mergeplan.engine = spark

    assert (ran.code, mergeplan.state.environments.get("dev").exists) == (0, False)
    assert len(mergeplan.state.promotions.pending()) == 1


def test_a_crash_of_the_recovery_is_recovered_too(tear_state: Callable[..., CommandLine]) -> None:
    mergeplan = tear_state("")
    mergeplan.engine, spark = Dying(mergeplan.engine), mergeplan.engine  # type: ignore[arg-type, assignment]
    with pytest.raises(Died):
        mergeplan("plan", "--auto-apply", *AT)
    mergeplan.engine = spark

    assert mergeplan("plan", "--auto-apply", *AT).code == 0
    assert (view_values(mergeplan), mergeplan.state.promotions.pending()) == ([2, 2], ())


def test_fetchdf_makes_no_state_and_needs_none(tmp_path: Path, engine: SparkEngine) -> None:
    write_shop(tmp_path, **NOTHING, a=A.format(1))
    mergeplan = CommandLine(tmp_path, engine)

    assert mergeplan("fetchdf", "select 1").code == 0
    assert not (tmp_path / ".mergeplan/state.db").exists()
    (tmp_path / ".mergeplan").mkdir(exist_ok=True)
    (tmp_path / ".mergeplan/state.db").write_text("no database, but quite some text" * 100)

    ran = mergeplan("fetchdf", "select 1")

    assert ran.code == 0
    assert ran.err.startswith("Warning: whether a promotion is unfinished is not known: ")


def hold_lease(store: StateStore, pid: int) -> None:
    """The lease on prod as a process left it."""
    with store.leases.hold("prod", "somebody at work"), store.database.writing() as tx:
        row = tx.execute(tx.select(t.leases).where(t.leases.c.name == "prod")).one()._mapping
    with store.database.writing() as tx:
        left = {**row, "pid": pid, "machine": row["machine"].partition(" since ")[0]}
        tx.execute(t.leases.update().where(t.leases.c.name == "prod").values(left))


def hearing(mergeplan: CommandLine, word: str, then: Callable[[], None], *arguments: str) -> Any:
    """Call a verb, and do something as soon as it has said a word."""
    import io
    from contextlib import chdir, redirect_stdout

    from mergeplan.planner.cli.main import run
    from tests.planner.cli.conftest import Ran

    class Ear(io.StringIO):
        def write(self, text: str) -> int:
            if word in text:
                then()
            return super().write(text)

    out = Ear()
    with chdir(mergeplan.root), redirect_stdout(out):
        code = run(VERBS, arguments, mergeplan._open)
    return Ran(code, out.getvalue(), "")
