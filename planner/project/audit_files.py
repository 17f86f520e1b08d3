"""The audits of a project's files, and those that its models call."""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.model.model import Audit, Model
from mergeplan.planner.parsing.definitions.audits.audit_calls import check_call
from mergeplan.planner.parsing.definitions.audits.audits import parse_audits
from mergeplan.planner.parsing.files.model_file import Defaults
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.refused import Refusing
from mergeplan.planner.project.remembered import Remembered, Said, load_file


def read_audits(
    reading: Folder,
    refusing: Refusing,
    config: Config,
    file_cache: Remembered,
    defaults: Defaults,
    audits: dict[str, Audit],
) -> None:
    """Read the audits of audits/ into `audits`.

    A model that calls an unreadable audit is refused; an unreadable standalone audit, which none calls, is an error.
    """

    def parse(text: str, path: str, defaults: Defaults) -> Said:
        return (), parse_audits(text, path, defaults)

    def read(name: str) -> None:
        for audit in load_file(reading, file_cache, defaults, name, parse)[1]:
            add_audit(reading, audits, audit)

    names = list(reading.files("audits", config.ignore_patterns, ".sql"))
    alone = [name for name in names if "standalone" in _try_read(reading, name).lower()]
    reading.each(alone, read)
    refusing.files([name for name in names if name not in alone], read)


def _try_read(reading: Folder, name: str) -> str:
    """Return a file's text, or '' if it cannot be read; parsing it raises the error later."""
    try:
        return reading.text(name)
    except ProjectError:
        return ""


def add_audit(reading: Folder, audits: dict[str, Audit], audit: Audit) -> None:
    """Add an audit; two of one name make the project fail."""
    first_audit = audits.setdefault(audit.name, audit)
    if first_audit is not audit:
        message = f"The audit `{audit.name}` is already defined at {Place(first_audit.path, first_audit.line)}."
        reading.errors.append(ProjectError(message, place=Place(audit.path, audit.line)))


def check_audits(
    refusing: Refusing, file_cache: Remembered, models: Mapping[str, Model], audits: Mapping[str, Audit]
) -> None:
    calls = {call for model in models.values() for call in model.checks.audits if call.name not in audits}
    tried = file_cache.find_tried_calls(calls)

    def check(model: Model) -> None:
        for call in model.checks.audits:
            if call not in tried:
                check_call(call, audits, model.locate(call.name, in_block=True))

    counts_before = len(refusing.names().refusals), len(refusing.errors)
    refusing.check(models.values(), check)
    if (len(refusing.names().refusals), len(refusing.errors)) == counts_before:
        file_cache.keep_tried(calls - tried)


def attach_audits(model: Model, audits: Mapping[str, Audit]) -> Model:
    if not model.checks.audits:
        return model
    described_calls = [(call, _describe_audit(audits.get(call.name))) for call in model.checks.audits]
    if all(call.query == query for call, query in described_calls):
        return model
    calls = tuple(replace(call, query=query) for call, query in described_calls)
    return replace(model, checks=replace(model.checks, audits=calls))


def _describe_audit(audit: Audit | None) -> str:
    parts = (audit.sql, *filter(None, (audit.misread,)), audit.blocking, audit.defaults) if audit else ()
    return repr((*parts, "skip") if audit and audit.skip else parts) if audit else ""
