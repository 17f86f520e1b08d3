"""Stands for `mergeplan` where a test is about the bot: models are files, tables are hashes, a plan their difference.

`MERGEPLAN_HOME/knobs.json` makes it misbehave; `MERGEPLAN_HOME/calls.jsonl` tells how it was called.

A test starts it five times, mostly with `-S`: what it would import beside this costs more than what it does.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOME = os.environ["MERGEPLAN_HOME"]
STATE = f"{HOME}/scripted.json"
os.makedirs(HOME, exist_ok=True)
LOCK = os.open(f"{HOME}/scripted.lock", os.O_RDWR | os.O_CREAT)
NO_COLUMNS: dict[str, Any] = {"added": [], "altered": [], "removed": [], "every": False, "lost_readers": []}
PARENTS = {"shop.totals": ["shop.orders"]}


def say(event: str, **facts: object) -> None:
    version = {"version": 1} if event in ("plan", "result") else {}
    print(json.dumps({"event": event, **version, **facts}), flush=True)  # noqa: T201 - it is a command line


def read(path: str) -> str:
    """A file's text, '' when there is none."""
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def write(path: str, text: str, mode: str = "w") -> None:
    with open(path, mode) as file:
        file.write(text)


def knobs() -> dict[str, Any]:
    turn: dict[str, Any] = json.loads(read(f"{HOME}/knobs.json") or "{}")
    return turn


def load() -> dict[str, Any]:
    state: dict[str, Any] = json.loads(read(STATE) or '{"environments": {}, "overrides": {}, "history": {}}')
    return state


def load_to_change() -> dict[str, Any]:
    """The state, which no other process changes before it is saved or this one ends."""
    fcntl.flock(LOCK, fcntl.LOCK_EX)
    return load()


def save(state: dict[str, Any]) -> None:
    fresh = f"{HOME}/scripted.{os.getpid()}"
    write(fresh, json.dumps(state))
    os.replace(fresh, STATE)
    fcntl.flock(LOCK, fcntl.LOCK_UN)


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


def models() -> dict[str, str]:
    if not any(os.path.exists(name) for name in ("config.yaml", "config.py")):
        fail("There is no config.yaml.", "", 0, "ProjectError", "")
    texts = {}
    names = sorted(os.listdir("models")) if os.path.isdir("models") else []
    for path in (f"models/{name}" for name in names if name.endswith(".sql")):
        for line, text in enumerate(read(path).splitlines(), start=1):
            if "BROKEN" in text:
                fail("`BROKEN` is no SQL.", path, line, "ProjectError", "Mend it.")
            if "LEAK" in text:
                fail(f"The environment is {dict(os.environ)}.", path, line, "ProjectError", "")
        texts[f"shop.{path[len('models/') : -len('.sql')]}"] = read(path)
    return texts


def fail(message: str, path: str, line: int, kind: str, hint: str, code: int = 1) -> None:
    where = {"path": path, "line": line, "column": 0}
    retry = kind in ("LeaseHeld", "CatalogBusy", "SparkLost")
    say("error", message=message, **where, hint=hint, exit_code=code, kind=kind, retry=retry)
    say("result", ok=False, applied=False)
    raise SystemExit(code)


def option(name: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else ""


def changes(state: dict[str, Any], name: str, now: dict[str, str], overrides: dict[str, Any]) -> list[dict[str, Any]]:
    base = state["environments"].get("prod", {}).get("models", {})
    rows = []
    for model in sorted(now.keys() | base.keys()):
        if model not in base or model not in now:
            change, category, reason = (
                ("added" if model in now else "removed"),
                None,
                "It is new." if model in now else "It is gone.",
            )
        elif base[model] != now[model]:
            said = overrides.get(model)
            change = "direct"
            category = said["category"] if said else "breaking" if "WHERE" in now[model] else "non_breaking"
            reason = f"{said['who']} said so." if said else f"`{category}` by its text <b>@team</b>."
        else:
            continue
        rows.append(change_of(model, change, category, reason, overrides.get(model)))
    edited = {row["name"]: row["category"] for row in rows if row["change"] == "direct"}
    for model, parents in PARENTS.items():
        above = [edited[parent] for parent in parents if parent in edited]
        if above and model in now and model not in edited and model in base:
            breaking = "breaking" in above
            category = "indirect_breaking" if breaking else "indirect_non_breaking"
            rows.append(change_of(model, "indirect", category, "Its parent changed."))
    for row in rows:
        row["recomputed"] = row["category"] not in ("indirect_non_breaking",) and row["change"] != "removed"
        row["table"] = f"shop__{row['name'].split('.')[1]}__{digest(now.get(row['name'], ''))}"
        row["shares"] = None if row["recomputed"] else "prod"
        row["parents"] = PARENTS.get(row["name"], [])
        row["path"] = f"models/{row['name'].split('.')[1]}.sql"
        row["diff"] = (
            ""
            if row["change"] == "indirect"
            else f"--- prod\n+++ {name}\n-{base.get(row['name'], '')}+{now.get(row['name'], '')}"
        )
        row["intervals"] = [["2026-01-01", "2026-01-08"]] if row["recomputed"] else []
    return rows


def change_of(
    name: str, change: str, category: str | None, reason: str, said: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A model of a plan with every key of docs/schema/plan.json."""
    override = override_of(said) if said and change == "direct" else None
    return {
        "name": name, "kind": "FULL", "path": "", "line": 1, "owner": "", "change": change, "category": category,
        "tags": knobs().get("tags", {}).get(name, []),
        "rule": "text", "reason": reason,
        "columns": NO_COLUMNS | knobs().get("columns", {}).get(name, {}),
        "recomputed": False, "checked": None, "skipped": False, "table": "", "shares": None, "intervals": [],
        "copies": [], "needed": [], "recorded": [], "lost": [], "first_load": False,
        "preview": False, "keeps": [], "estimate": estimate(change), "parents": [], "diff": "",
        "override": override,
    }  # fmt: skip


def estimate(change: str) -> dict[str, Any]:
    """What a directly changed model costs, by the knobs; nothing is known of any other."""
    size = knobs().get("bytes", 0) if change == "direct" else 0
    return {"bytes": size, "rows": 0, "seconds": 0.0, "basis": ["statistics"] if size else []}


def override_of(said: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": said["model"],
        "category": said["category"],
        "who": said["who"],
        "at": None,
        "restates": "",
        "ended_by": "",
    }


def overridden(state: dict[str, Any], name: str, now: dict[str, str]) -> dict[str, Any]:
    """The categories that people gave, stored; those of a text that has changed are gone."""
    sources = [state["overrides"].get(source, {}) for source in option("--overrides-from").split(",")]
    overrides = {}
    for environment_overrides in (*reversed(sources), state["overrides"].get(name, {})):
        overrides |= environment_overrides
    for index, part in enumerate(sys.argv):
        if part == "--categorize":
            model, _, category = sys.argv[index + 1].partition("=")
            if category == "reset":
                overrides.pop(model, None)
                continue
            text = digest(now.get(model))
            overrides[model] = {"model": model, "category": category, "who": option("--who"), "text": text}
    ended = [override for model, override in overrides.items() if override["text"] != digest(now.get(model))]
    state["ended"] = [*state.get("ended", []), *({**override_of(override), "ended_by": "edit"} for override in ended)]
    overrides = {model: override for model, override in overrides.items() if override not in ended}
    state["overrides"][name] = overrides
    save(state)
    return overrides


def show_plan(name: str, state: dict[str, Any], now: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    turn, overrides = knobs(), state["overrides"][name]
    return {
        "id": digest(name, rows, now),
        "digest": digest("digest", [(row["name"], row["category"], row["table"]) for row in rows]),
        "environment": name, "base": "prod",
        "virtual": not any(row["intervals"] for row in rows), "empty": not rows, "models": rows,
        "views": {"added": [e["name"] for e in rows if e["change"] == "added"], "swapped": [], "dropped": []},
        "comparisons": [], "exposures": [], "warnings": turn.get("warnings", []), "blockers": turn.get("blockers", []),
        "overrides": [override_of(override) for override in overrides.values()],
        "unused_overrides": state.get("ended", []),
        "restatement": None,
        "refused": turn.get("refused", []), "left_out": [],
    }  # fmt: skip


def fail_where_wanted(name: str, rows: list[dict[str, Any]]) -> None:
    """Ends the run as the knobs say."""
    turn = knobs()
    if turn.get("held") == name:
        fail("`prod` is held by ann on laptop:7.", "", 0, "LeaseHeld", "", 4)
    if turn.get("busy", 0) > read(f"{HOME}/calls.jsonl").count(f'"plan", "{name}"') - 1:
        fail(f"the tables in {HOME}/spark are in use by process 7 (`mergeplan warm`).", "", 0, "CatalogBusy", "", 4)
    most = next((int(argument.partition("=")[2]) for argument in sys.argv if argument.startswith("--max-bytes=")), None)
    if most is not None and sum(row["estimate"]["bytes"] for row in rows) > most:
        allowed = "Computing this plan would read at least 5,000 bytes, and 1,000 are allowed."
        fail(allowed, "", 0, "TooCostly", "Compute less.", 4)
    if turn.get("fail") == name.split("_")[0]:
        fail("Spark refused a query.", "models/orders.sql", 1, "QueryError", "")
    if turn.get("no_memory") == name:
        fail("Spark ran out of memory.", "", 0, "SparkLost", "Give it more.")
    if turn.get("audit"):
        found_rows = {"reads": [], "query": "", "sample": {"columns": [], "rows": []}, "path": "", "line": 0}
        say(
            "audit",
            model="shop.orders",
            name="not_null",
            ok=False,
            blocking=True,
            count=3,
            unchanged=False,
            **found_rows,
        )
        fail("The audit not_null found rows.", "models/orders.sql", 1, "AuditFailed", "", 4)


def select(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The changes of the selected models, by exact names, and the names of the edited ones that are not selected."""
    selectors = [part.partition("=")[2] for part in sys.argv if part.startswith("--select-model=")]
    if not selectors:
        return rows, []
    left = [row["name"] for row in rows if row["name"] not in selectors and row["change"] != "indirect"]
    edited = {row["name"] for row in rows} - set(left)
    kept = [
        row for row in rows if row["name"] in edited and (row["change"] != "indirect" or edited & set(row["parents"]))
    ]
    return kept, left


def plan(name: str) -> None:
    say("stage", name="create", total=1, spark_ui="")
    while knobs().get("ponder") == name.split("_")[0]:
        time.sleep(0.05)
    state, now = load_to_change(), models()
    rows = changes(state, name, now, overridden(state, name, now))
    rows, left = select(rows)
    built = {table for environment in state["environments"].values() for table in environment.get("tables", [])}
    if name == "prod":
        for row in rows:
            row["intervals"] = [] if row["table"] in built else row["intervals"]
    shown = show_plan(name, state, now, rows) | {"not_selected": left}
    compare(name, shown)
    say("plan", plan=shown)
    if "--auto-apply" not in sys.argv:
        say("result", ok=True, plan=shown, applied=False)
        return
    wait(name)
    fail_where_wanted(name, rows)
    apply(name, shown, now)


def compare(name: str, shown: dict[str, Any]) -> None:
    """Tells the plan before Spark has checked it, and waits, while a knob says so."""
    if knobs().get("comparing") != name.split("_")[0]:
        return
    for model in shown["models"]:
        model["checked"] = {"state": "unchecked", "detail": "the comparison is running"}
    say("plan", plan=shown)
    while knobs().get("comparing") == name.split("_")[0]:
        time.sleep(0.05)
    for model in shown["models"]:
        model["checked"] = {"state": "agrees", "detail": ""}


def apply(name: str, shown: dict[str, Any], now: dict[str, str]) -> None:
    """Promotes what was planned; says so unless it dies of it."""
    rows, turn, state, note = shown["models"], knobs(), load_to_change(), option("--note")
    state.pop("torn", None)  # what a crash left half promoted is finished first
    old = state["environments"].get(name, {"revision": 0})
    before = old.get("views") if note and old.get("note") == note and (not rows or old["models"] == now) else None
    revision = old["revision"] + bool(not before and (rows or not old["revision"]))
    swapped = sum(row["change"] in ("direct", "indirect") for row in rows)
    views = {"added": len(shown["views"]["added"]), "swapped": swapped, "dropped": 0, "unchanged": 1}
    tables = [row["table"] for row in rows]
    environment = {"revision": revision, "models": now, "plan_id": shown["id"], "tables": tables}
    state["environments"][name] = {**environment, "note": note, "views": before or views}
    state["history"].setdefault(name, {})[str(revision)] = now
    save(state)
    if turn.get("die") == name and not before:
        raise SystemExit(137)
    if before:
        say("result", ok=True, plan=shown, applied=False, promoted_before={"views": before, "revision": revision})
        return
    promotion = {"views": views, "revision": revision, "spark_jobs": sum(bool(row["intervals"]) for row in rows)}
    asked = any(argument.startswith("--data-diff") for argument in sys.argv)
    compared: dict[str, Any] = {"data_diff": data_diff(rows)} if asked and turn.get("rows_changed") is not None else {}
    if "--physical-plan" in sys.argv and turn.get("physical"):
        compared["physical_plan"] = physical_plan(rows, turn["physical"])
    tests = {"passed": 2, "failed": 0, "unchanged": 0}
    say("result", ok=True, plan=shown, applied=True, promotion=promotion, tests=tests, audits=[], **compared)


def restate(name: str) -> None:
    """The models of the environment's own tables that were named, as if they had been computed again."""
    model = next(part.partition("=")[2] for part in sys.argv if part.startswith("--restate-model="))
    again = change_of(model, "restated", None, "It was asked for.") | {"intervals": [["2026-01-01", "2026-01-08"]]}
    shown = {
        "id": "again", "digest": "", "environment": name, "base": "prod", "virtual": False, "empty": False,
        "models": [again], "views": {"added": [], "swapped": [], "dropped": []}, "comparisons": [], "warnings": [],
        "exposures": [], "blockers": [], "overrides": [], "unused_overrides": [], "refused": [], "left_out": [],
        "not_selected": [], "restatement": {"left_out": [], "environments": []},
    }  # fmt: skip
    say("result", ok=True, plan=shown, applied=True)


def data_diff(model_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many rows of `amount` changed as the knobs say, in each table that is built anew."""
    changed, empty = knobs().get("rows_changed", 0), {"columns": list[str](), "rows": list[str]()}
    rows = {"first": 10, "second": 10, "only_first": 0, "only_second": 0, "common": 10, "matched": 10 - changed,
            "changed": changed, "null_keys": [0, 0], "duplicate_keys": [0, 0]}  # fmt: skip
    return [
        {"model": row["name"], "schema": {"added": [], "removed": [], "retyped": [], "uncompared": []},
         "nullability": [], "before": 10, "after": 10, "same_files": False, "rows": rows,
         "columns": [{"name": "amount", "changed": changed}], "key": ["id"], "days": [],
         "left_out": [], "note": "", "is_off": False, "seconds": 0.1,
         "samples": {"changed": empty, "only_first": empty, "only_second": empty}}
        for row in model_rows
        if row["change"] in ("direct", "indirect") and row["recomputed"]
    ]  # fmt: skip


def physical_plan(rows: list[dict[str, Any]], cost: str) -> list[dict[str, Any]]:
    """Each edited model has this cost once more than before."""
    change = {"cost": cost, "before": 0, "after": 1, "tables": ["shop.items"], "columns": []}
    edited = (row["name"] for row in rows if row["change"] == "direct")
    return [{"model": name, "changes": [change], "note": ""} for name in edited]


def roll_back(state: dict[str, Any], target: int) -> dict[str, Any]:
    """What going back to a revision of prod does; tables lack as many days as the knobs say."""
    history, now = state["history"]["prod"], state["environments"]["prod"]
    old, new = now["models"], history[str(target)]
    row = {"revision": target, "action": "promoted", "plan_id": "", "at": "2026-01-07T10:00:00+00:00", "models": 2,
           "who": "", "note": ""}  # fmt: skip
    moved = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    tables = [(f"shop__{digest(texts[name])}" if name in texts else None) for name in moved for texts in (old, new)]
    views = [
        {"model": name, "view": name, "before": before, "after": after}
        for name, before, after in zip(moved, tables[::2], tables[1::2], strict=True)
    ]
    lacks = [["2026-01-05", f"2026-01-0{5 + knobs()['lacks']}"]] if knobs().get("lacks") else []
    behind = [
        {"model": name, "kind": "INCREMENTAL_BY_TIME_RANGE", "table": "t", "held": [], "lacks": lacks, "due": lacks}
        for name in moved
        if lacks and name in new
    ]
    since = [row | {"revision": number, "note": ""} for number in range(now["revision"], target, -1)]
    return {"environment": "prod", "revision": now["revision"], "target": row, "until": "2026-01-08T10:00:00+00:00",
            "since": since, "views": views, "behind": behind, "gone": []}  # fmt: skip


def wait(name: str) -> None:
    """Builds for as long as the knobs say so; with `hush` without a word, which outlives whoever listened."""
    index = 0
    if knobs().get("spark_ui"):
        say("stage", name="backfill", total=1, spark_ui=knobs()["spark_ui"])
    if knobs().get("hang") == name.split("_")[0]:
        write(f"{HOME}/hanging", f"{os.getpid()}\n", "a")
    while knobs().get("hang") == name.split("_")[0]:
        index += 1
        if not knobs().get("hush"):
            say(
                "batch",
                model="shop.orders",
                index=index,
                of=1000,
                interval=["2026-01-01", "2026-01-02"],
                rows=1,
                seconds=0.1,
                copied=False,
                unchanged=False,
                audits_unchanged=0,
            )
        time.sleep(0.05)


def write_catalog(path: str, state: dict[str, Any]) -> None:
    """The document that `docs --format json` writes, of the models of prod."""
    if knobs().get("fail") == "docs":
        raise SystemExit(1)
    prod = state["environments"].get("prod", {"models": {}, "revision": 0})
    models = [
        {"name": name, "kind": "FULL", "path": f"models/{name}.sql", "line": 1, "owner": knobs().get("owner", ""),
         "definition": text, "query": text, "schedule": "@daily", "interval_unit": "day",
         "columns": [{"name": "id", "type": "int", "description": "its number", "made_from": outside_columns(text)}],
         "parents": sorted({end["model"] for end in outside_columns(text)}),
         "deployed": {"view": name, "table": f"{name}__1", "version": "1"}}
        for name, text in prod["models"].items()
    ]  # fmt: skip
    made = {"made_at": "2026-01-05T10:00:00+00:00", "promoted_at": "2026-01-05T09:00:00+00:00"}
    view = {"version": 1, "project": "shop", "environment": "prod", "revision": prod["revision"], "models": models}
    write(path, json.dumps(view | made))


def outside_columns(text: str) -> list[dict[str, str]]:
    """The columns that comments of a model name: `-- reads shop.orders.id`."""
    names = [line.removeprefix("-- reads ").rpartition(".") for line in text.splitlines() if line[:9] == "-- reads "]
    return [{"model": table, "column": column} for table, _, column in names]


def main() -> None:
    ruling = os.environ.get("MERGEPLAN_GATEWAYS_FROM")
    gateways = read(ruling) if ruling else ""
    call = {"argv": sys.argv[1:], "environ": dict(os.environ), "gateways": gateways, "pid": os.getpid()}
    write(f"{HOME}/calls.jsonl", json.dumps(call) + "\n", "a")
    verb, state = sys.argv[1], load()
    if number := knobs().get("crash"):
        import site

        site.main()
        from mergeplan.planner.file_note import note_file

        note_file("models/orders.sql")
        os.kill(os.getpid(), number)
    if knobs().get("defect") == verb:
        raise SystemExit(3)
    if verb == "plan" and any(part.startswith("--restate-model=") for part in sys.argv):
        restate(sys.argv[2])
    elif verb == "plan":
        plan(sys.argv[2])
    elif verb == "data_diff":
        while knobs().get("dawdle"):
            time.sleep(0.05)
        arguments = [argument for argument in sys.argv[2:-2] if not argument.startswith("--")]
        environment, asked = arguments[0], arguments[1:]
        against = next((flag.partition("=")[2] for flag in sys.argv if flag.startswith("--against=")), "prod")
        now, base = (state["environments"][label]["models"] for label in (environment, against))
        model_rows = [
            {"name": name, "change": "direct", "recomputed": True}
            for name in sorted(now.keys() & base.keys())
            if now[name] != base[name] and (not asked or name in asked)
        ]
        if asked and not model_rows:
            fail(f"`{asked[0]}` has no table here that differs from prod's.", "", 0, "RequestError", "")
        say("result", ok=True, applied=False, data_diff=data_diff(model_rows))
    elif verb == "lineage":
        nodes = [{"model": "shop.totals", "column": None, "kind": "FULL"}]
        graph = {"direction": "downstream", "nodes": nodes, "edges": [], "unfollowed": []}
        say("result", ok=True, applied=False, model=sys.argv[2], **graph)
    elif verb == "environments":
        rows = [
            {"name": name, "revision": record["revision"], "plan_id": record["plan_id"], "promoted_at": None,
             "models": len(record["models"]), "views": len(record["models"]), "expires_at": None}
            for name, record in state["environments"].items()
        ]  # fmt: skip
        torn = {"pending": state["torn"]} if state.get("torn") else {}
        say("result", ok=True, applied=False, environments=rows, **torn)
    elif verb == "diff":
        now, shown = models(), state["environments"][sys.argv[2]]["models"]
        rows = [
            {"name": name, "change": "direct", "category": "breaking", "reason": f"Against {sys.argv[2]}.",
             "columns": {"added": [], "altered": [], "removed": [], "every": False, "lost_readers": []},
             "diff": f"-{shown.get(name)}+{now.get(name)}", "rule": "text", "path": "", "line": 1}
            for name in sorted(now.keys() | shown.keys()) if now.get(name) != shown.get(name)
        ]  # fmt: skip
        say("result", ok=True, applied=False, environment=sys.argv[2], different=bool(rows), changes=rows)
        raise SystemExit(1 if rows else 0)
    elif verb == "docs":
        write_catalog(option("--output"), state)
    elif verb == "invalidate":
        state = load_to_change()
        state["environments"].pop(sys.argv[2], None)
        save(state)
        say("result", ok=True, applied=True)
    elif verb == "janitor":
        kept = [{"table": "s.two", "reason": "it is being written"}]
        say("result", ok=True, applied=False, expired=[], tables=[], dropped=True, cleaned=["s.one"], kept=kept)
    elif verb == "rollback":
        state = load_to_change()
        prod = state["environments"]["prod"]
        back = roll_back(state, int(option("--to")))
        if knobs().get("gone"):
            fail("The table `shop__orders__1` of revision 1 is gone.", "", 0, "Refused", "Plan again.", 4)
        if "--dry-run" in sys.argv:
            say("result", ok=True, applied=False, rollback=back)
            return
        prod |= {"models": state["history"]["prod"][option("--to")], "revision": prod["revision"] + 1}
        state["history"]["prod"][str(prod["revision"])] = prod["models"]
        save(state)
        if knobs().get("die") == "rollback":
            raise SystemExit(137)
        views = {"added": 0, "swapped": len(back["views"]), "dropped": 0, "unchanged": 1}
        promotion = {"views": views, "revision": prod["revision"], "spark_jobs": 0}
        say("result", ok=True, applied=True, promotion=promotion, rollback=back)


if __name__ == "__main__":
    main()
