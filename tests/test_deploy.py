"""The files in deploy/ are valid, set what the settings know, and agree with the image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import SecretStr
from starlette.routing import Route

from mergeplan.bot.context import BotContext
from mergeplan.bot.github.events import MAX_BYTES
from mergeplan.bot.github.gateway import GitHub
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.service.app import WEBHOOK, build_pages
from mergeplan.bot.settings import Settings

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose/compose.yaml"
KUSTOMIZATIONS = sorted((DEPLOY / "kubernetes").glob("*/kustomization.yaml"))
OLDEST, NEWEST = "1.31", "1.37"  # of Kubernetes
INSIDE = {"/healthz", "/readyz", "/metrics"}  # routes of the service that nobody outside needs
Json = dict[str, Any]


def objects(kustomization: Path) -> Iterator[Json]:
    """The objects of the files that a kustomization lists."""
    for name in yaml.safe_load(kustomization.read_text())["resources"]:
        yield from yaml.safe_load_all((kustomization.parent / name).read_text())


EVERY = [entry for path in KUSTOMIZATIONS for entry in objects(path)]
COMPOSED: Json = yaml.safe_load(COMPOSE.read_text())


def pod_of(deployment: Json) -> Json:
    pod: Json = deployment["spec"]["template"]["spec"]
    return pod


PODS = [pod_of(entry) for entry in EVERY if entry["kind"] == "Deployment"]


def name_of(entry: Json) -> str:
    return f"{entry['kind']}/{entry['metadata']['name']}"


def test_the_compose_file_is_valid() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("entry", EVERY, ids=name_of)
def test_each_object_is_valid(entry: Json, version: str) -> None:
    kubernetes_validate.validate(entry, version, strict=True)


def test_a_key_that_kubernetes_does_not_know_is_found() -> None:
    service: Json = next(entry for entry in EVERY if entry["kind"] == "Service")

    with pytest.raises(kubernetes_validate.ValidationError, match="sellector"):
        kubernetes_validate.validate({**service, "sellector": {}}, NEWEST, strict=True)


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_a_kustomization_lists_every_file_and_makes_its_namespace(path: Path) -> None:
    listed = yaml.safe_load(path.read_text())
    files = {file.name for file in path.parent.glob("*.yaml")} - {path.name}

    assert set(listed["resources"]) == files
    assert [entry["metadata"]["name"] for entry in objects(path) if entry["kind"] == "Namespace"] == [
        listed["namespace"]
    ]


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_what_kustomize_makes_is_valid_and_lies_in_its_namespace(path: Path) -> None:
    program = shutil.which(os.environ.get("KUSTOMIZE", "kustomize"))
    if not program:
        pytest.skip("no kustomize: `make workflows` builds one")
    command = [program, "build", str(path.parent)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr

    built: list[Json] = list(yaml.safe_load_all(done.stdout))
    namespace = yaml.safe_load(path.read_text())["namespace"]
    placed = {entry["metadata"].get("namespace") for entry in built if entry["kind"] != "Namespace"}
    images = [
        image["image"] for entry in built if entry["kind"] == "Deployment" for image in pod_of(entry)["containers"]
    ]

    assert sorted(map(name_of, built)) == sorted(map(name_of, objects(path)))
    assert placed == {namespace}
    assert [image for image in images if ":" not in image] == []
    for entry in built:
        kubernetes_validate.validate(entry, NEWEST, strict=True)


def test_every_variable_is_one_that_the_settings_know() -> None:
    known = {f"MERGEPLAN_{name.upper()}" for name in Settings.model_fields}
    (config,) = (entry["data"] for entry in EVERY if name_of(entry) == "ConfigMap/mergeplan")
    composed = COMPOSED["services"]["mergeplan"]
    secrets = {name.upper() for name in composed["secrets"]}

    assert config.keys() | composed["environment"].keys() | secrets <= known
    assert Settings.model_validate({name.removeprefix("MERGEPLAN_").lower(): value for name, value in config.items()})


def test_the_files_agree_with_the_image() -> None:
    image = (ROOT / "Dockerfile").read_text()
    port, user = re.search(r"EXPOSE (\d+)", image)[1], re.search(r"--uid (\d+)", image)[1]
    home = re.search(r"MERGEPLAN_HOME=(\S+)", image)[1]
    (pod,) = (pod for pod in PODS if pod["containers"][0]["name"] == "mergeplan")
    (container,) = pod["containers"]
    composed = COMPOSED["services"]["mergeplan"]

    assert [str(entry["containerPort"]) for entry in container["ports"]] == [port]
    assert composed["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert (str(pod["securityContext"]["runAsUser"]), composed["user"]) == (user, f"{user}:{user}")
    assert home in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert composed["volumes"] == [f"mergeplan:{home}"]


def test_spark_is_of_the_version_that_is_locked() -> None:
    locked = re.search(r"^pyspark==(.+)$", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)[1]
    texts = [path.read_text() for path in DEPLOY.rglob("*.yaml")]
    images = {version for text in texts for version in re.findall(r"apache/spark:([\w.]+)", text)}
    tags = {version for text in texts for version in re.findall(r"name: apache/spark\n\s+newTag: (\S+)", text)}

    assert images == tags == {locked}


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_a_pod_is_one_that_a_restricted_namespace_admits(pod: Json) -> None:
    (container,) = pod["containers"]
    limits = container["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (limits["allowPrivilegeEscalation"], limits["readOnlyRootFilesystem"]) == (False, True)
    assert limits["capabilities"] == {"drop": ["ALL"]}
    assert {"livenessProbe", "readinessProbe", "startupProbe", "resources"} <= container.keys()


@pytest.mark.parametrize("name", COMPOSED["services"])
def test_a_container_is_confined_and_no_secret_is_in_its_environment(name: str) -> None:
    service = COMPOSED["services"][name]
    secret = re.compile(r"PASSWORD$|SECRET$|KEY$|TOKEN$|STATE_URL$")

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert not [variable for variable in service.get("environment", {}) if secret.search(variable)]
    assert "healthcheck" in service or service["restart"] == "no"


def service_routes(home: Path) -> set[str]:
    """The first part of the address of each of the service's routes."""
    settings = Settings(home=home, webhook_secret=SecretStr("no-secret"), github_token=SecretStr("no-token"))
    inbox = Inbox(f"sqlite:///{home}/bot.db")
    routes = build_pages(BotContext(settings, inbox, GitHub(settings), "nobody")).routes
    inbox.close()
    return {"/" + route.path.split("/")[1] for route in routes if isinstance(route, Route)} | {WEBHOOK}


def test_the_ingress_leads_to_each_route_that_is_for_the_outside(tmp_path: Path) -> None:
    (ingress,) = (entry["spec"] for entry in EVERY if entry["kind"] == "Ingress")
    (rule,) = ingress["rules"]
    services = {name_of(entry): entry["spec"]["ports"] for entry in EVERY if entry["kind"] == "Service"}

    assert {entry["path"] for entry in rule["http"]["paths"]} == service_routes(tmp_path) - INSIDE
    for backend in (entry["backend"]["service"] for entry in rule["http"]["paths"]):
        assert backend["port"]["name"] in [port["name"] for port in services[f"Service/{backend['name']}"]]
    assert [host for tls in ingress["tls"] for host in tls["hosts"]] == [rule["host"]]


def test_the_ingress_takes_what_github_sends() -> None:
    (annotations,) = (entry["metadata"]["annotations"] for entry in EVERY if entry["kind"] == "Ingress")

    assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == f"{MAX_BYTES // 2**20}m"


def test_the_pages_name_every_route(tmp_path: Path) -> None:
    service, kubernetes = ((ROOT / f"docs/guides/{name}.md").read_text() for name in ("service", "kubernetes"))
    table = service.partition("\n## Health, numbers, logs\n")[2].partition("\n## ")[0]
    routes = service_routes(tmp_path)

    assert [route for route in routes if not re.search(rf"^\| .*`{route}[`/]", table, flags=re.MULTILINE)] == []
    for page in (service, kubernetes):
        assert [route for route in routes - INSIDE if f"`{route}`" not in page and f"`{route}/`" not in page] == []


def test_the_ingress_and_prometheus_reach_the_service() -> None:
    (policy,) = (entry["spec"] for entry in EVERY if name_of(entry) == "NetworkPolicy/mergeplan")
    (pod,) = (pod for pod in PODS if pod["containers"][0]["name"] == "mergeplan")
    (rule,) = policy["ingress"]
    namespaces = [source["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for source in rule["from"]]

    assert namespaces == ["ingress-nginx", "monitoring"]
    assert [port["port"] for port in rule["ports"]] == [pod["containers"][0]["ports"][0]["containerPort"]]


def test_each_service_finds_its_pods_and_each_policy_is_about_some() -> None:
    labels = [entry["spec"]["template"]["metadata"]["labels"] for entry in EVERY if entry["kind"] == "Deployment"]
    made = [*labels, {"app.kubernetes.io/name": "spark-executor"}]
    selectors = [entry["spec"]["selector"] for entry in EVERY if entry["kind"] == "Service"]
    selectors += [entry["spec"]["podSelector"]["matchLabels"] for entry in EVERY if entry["kind"] == "NetworkPolicy"]
    selectors += [entry["spec"]["selector"]["matchLabels"] for entry in EVERY if entry["kind"] == "PodDisruptionBudget"]

    assert [selector for selector in selectors if selector not in made] == []


def test_the_secrets_that_a_script_writes_are_those_that_the_compose_file_reads(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    script.write_text((DEPLOY / "compose/secrets.sh").read_text())
    (tmp_path / "key.pem").write_text("a key\n")

    subprocess.run(["sh", str(script), "key.pem"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    again = subprocess.run(["sh", str(script), "key.pem"], cwd=tmp_path, capture_output=True, timeout=60, check=False)

    written = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    assert {f"secrets/{name}" for name in written} == {entry["file"] for entry in COMPOSED["secrets"].values()}
    assert written["postgres_password"] in written["mergeplan_state_url"]
    assert again.returncode == 1
