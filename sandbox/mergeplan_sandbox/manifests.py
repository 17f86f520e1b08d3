"""Apps from manifests: a form brings the manifest, the browser takes a code back, the code gives the key, once."""

import json
import secrets
from urllib.parse import urlsplit

from mergeplan_sandbox.api import shapes
from mergeplan_sandbox.api.limits import not_found
from mergeplan_sandbox.state import APP_EVENTS, APP_PERMISSIONS, Json, State

LEVELS = ("read", "write")


def take_manifest(state: State, text: str) -> tuple[str, str]:
    """Return the address to redirect the browser to, with a code, or the error in the manifest."""
    try:
        manifest = json.loads(text)
        problem = _find_problem(manifest)
    except (ValueError, AttributeError, TypeError):
        return "", "The manifest is no JSON object with what GitHub documents."
    if problem:
        return "", problem
    code = secrets.token_hex(20)
    state.app.codes[code] = manifest
    back = manifest["redirect_url"]
    return f"{back}{'&' if '?' in back else '?'}code={code}", ""


def _find_problem(manifest: Json) -> str:
    hook = manifest.get("hook_attributes", {})
    addresses = (manifest["url"], hook["url"], manifest["redirect_url"]) if "redirect_url" in manifest else ()
    if not addresses or any(urlsplit(address).scheme not in ("http", "https") for address in addresses):
        return "url, hook_attributes.url and redirect_url must be addresses."
    rights = manifest.get("default_permissions", {})
    unknown = [name for name, level in rights.items() if name not in APP_PERMISSIONS or level not in LEVELS]
    unknown += [name for name in manifest.get("default_events", []) if name not in APP_EVENTS]
    return f"Not known here: {', '.join(unknown)}." if unknown else ""


def convert_code(state: State, code: str) -> Json:
    """Return the App with its key and secrets; answer 404 for a code that was used already or never issued."""
    manifest = state.app.codes.pop(code, None)
    if manifest is None:
        raise not_found()
    state.hook.url, state.hook.secret = manifest["hook_attributes"]["url"], secrets.token_hex(20)
    shown = shapes.app_shape(state)
    granted = {"permissions": {"metadata": "read", **manifest.get("default_permissions", {})}}
    credentials = {
        "client_secret": secrets.token_hex(20),
        "webhook_secret": state.hook.secret,
        "pem": state.app.private_key,
    }
    return (
        shown
        | granted
        | {"name": manifest.get("name", shown["name"]), "events": manifest["default_events"]}
        | credentials
    )
