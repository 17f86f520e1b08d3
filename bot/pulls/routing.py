"""Which of a repository's projects a command is for, so that each is carried out once, and by the project it means."""

from collections.abc import Sequence
from dataclasses import dataclass

from mergeplan.bot.commands.command import Command, Mistake
from mergeplan.bot.commands.table import FORMS
from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import changes_no_model
from mergeplan.bot.projects import folder_of, inside, project_keys, repository_of
from mergeplan.bot.records import Pull


@dataclass(frozen=True)
class ProjectFacts:
    key: str
    folder: str
    touched: bool
    models: tuple[str, ...] = ()  # of its plan


def target_projects(line: Command | Mistake, projects: Sequence[ProjectFacts]) -> tuple[str, ...]:
    """Return the keys of the projects that answer a line. Pure.

    A line that names a project is for that one. Any other is for the projects that the pull request touches, or the
    first where it touches none; of these, for those that plan the model that it names; and of a line that is no command
    one project speaks for all.
    """
    first = tuple(project.key for project in projects[:1])
    if line.project:
        return tuple(project.key for project in projects if project.folder == line.project) or first
    touched = tuple(project for project in projects if project.touched)
    if isinstance(line, Mistake) or FORMS[line.verb].anybody:
        return tuple(project.key for project in touched[:1]) or first
    planned = tuple(project for project in touched if _has_model(project, line.model)) if line.model else ()
    return tuple(project.key for project in planned or touched) or first


def check_project(line: Command | Mistake, projects: Sequence[ProjectFacts]) -> Command | Mistake:
    if not line.project or line.project in (project.folder for project in projects):
        return line
    folders = ", ".join(f"`{project.folder}`" for project in projects)
    return Mistake(line.text, "There is no such project.", f"Projects: {folders}.")


def projects_of(context: BotContext, gateway: RepositoryGateway, number: int, base: str) -> tuple[ProjectFacts, ...]:
    """Return the projects that a repository has at its base commit or gets by a pull request.

    It touches a project by its files, or by what was shown on it before. A project whose commands begin otherwise than
    those of this one is no concern of its commands.
    """
    folders = context.settings.project_folders
    paths, facts = gateway.list_pull_paths(number), list[ProjectFacts]()
    spaces = {key: context.inbox.prods.get(key).namespace for key in project_keys(repository_of(gateway.name), folders)}
    for key in (project_key for project_key, namespace in spaces.items() if namespace == spaces[gateway.name]):
        folder, record = folder_of(key, folders), context.inbox.pulls.get(key, number)
        edited = paths is None or not changes_no_model(_project_paths(paths, folder, folders), folder)
        touched = edited or bool(record.comment.id or record.environment.exists)
        if not touched and not context.has_project(context.checkout(context.forge.repository(key)), base):
            continue
        plan = record.outcome.plan if record.outcome else None
        models = tuple(model.name.lower() for model in plan.models) if plan else ()
        facts.append(ProjectFacts(key, folder, touched, models))
    return tuple(facts)


def is_there(context: BotContext, gateway: RepositoryGateway, base: str, pull: Pull) -> bool:
    """Return False where the repository neither has nor gets the project's folder."""
    if not gateway.project or context.has_project(context.checkout(gateway), base):
        return True
    paths = gateway.list_pull_paths(pull.number)
    return paths is None or bool(inside(paths, gateway.folder))


def _project_paths(paths: Sequence[str], folder: str, folders: Sequence[str]) -> tuple[str, ...]:
    deeper = [subfolder for subfolder in folders if subfolder != folder and inside([f"{subfolder}/"], folder)]
    nested_paths = {path for subfolder in deeper for path in paths if inside([path], subfolder)}
    return tuple(path for path in paths if path not in nested_paths)


def _has_model(project: ProjectFacts, name_in_command: str) -> bool:
    """Return True when the name means a model of the project's plan, by its last part too, or one of its columns."""
    name = name_in_command.strip("+")
    return any(model == name or model.endswith(f".{name}") or name.startswith(f"{model}.") for model in project.models)
