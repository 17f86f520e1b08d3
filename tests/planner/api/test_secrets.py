"""Neither an answer nor a journal holds a secret of the project, of the server or of its tokens."""

from __future__ import annotations

from pathlib import Path

from mergeplan.planner.api.access import Access, Scope
from mergeplan.planner.api.app import make_api
from tests.planner.api.serving import serve, wait_for
from tests.planner.shop import write_shop

SECRET = "hunter2-of-the-warehouse"  # noqa: S105 - it must not be seen
TOKENS = {scope: f"{scope}-{'t' * 32}" for scope in Scope}
CONFIG = f"""
gateways:
  local:
    connection: {{type: spark, config: {{spark.hadoop.fs.s3a.secret.key: {SECRET}}}}}
default_gateway: local
model_defaults: {{dialect: spark, start: 2026-01-01}}
"""


def test_no_answer_and_no_journal_has_a_secret(tmp_path: Path) -> None:
    write_shop(tmp_path, config=CONFIG)
    gets = [path for path, operations in make_api().openapi()["paths"].items() if "get" in operations]
    fill = {"name": "shop.daily", "model": "shop.daily", "column": "price", "path": "config.yaml"}
    with serve(tmp_path, Access(tokens=TOKENS), edit=True) as (client, context):
        client.headers["Authorization"] = f"Bearer {TOKENS[Scope.APPLY]}"
        plan = wait_for(client, client.post("/api/v1/plans", json={}).headers["location"])
        broken = wait_for(client, client.post("/api/v1/plans", json={"select": ["no"]}).headers["location"])
        answers = [client.get(path.format(**fill, job_id=plan["id"])).text for path in gets]
        answers += [client.get(f"/api/v1/jobs/{broken['id']}").text]
        (tmp_path / "config.yaml").write_text(CONFIG.replace("type: spark", "type: sparc"))
        context.reader.expire()
        answers += [client.get("/api/v1/models").text]
        files = [file.read_text("utf-8", "replace") for file in context.jobs.folder.rglob("*") if file.is_file()]

    assert (plan["status"], broken["status"]) == ("done", "failed") and "sparc" in answers[-1]
    assert not [text for text in (*answers, *files) for secret in (SECRET, *TOKENS.values()) if secret in text]
