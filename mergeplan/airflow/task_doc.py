"""The documentation of a model's task. Standard library only."""

from __future__ import annotations

from mergeplan.airflow.graph import ScheduledModel
from mergeplan.markdown import code_span


def write_model_doc(model: ScheduledModel, *, titled: bool) -> str:
    """Return a model's description, which may be Markdown, and its facts as code."""
    due = f"`{model.cron} {model.time_zone or 'UTC'}`" if model.cron else "never"
    path = code_span(model.path) if model.path else "no file"
    facts = [f"{code_span(model.kind)}, due {due}, in {path}", f"table {code_span(model.table)}"]
    facts += [
        f"{word}: {', '.join(map(code_span, texts))}"
        for word, texts in (("audits", model.audits), ("tags", model.tags))
        if texts
    ]
    title = [f"**{code_span(model.name)}**", ""] if titled else []
    return "\n".join([*title, model.description, "", *(f"- {fact}" for fact in facts)]).strip()
