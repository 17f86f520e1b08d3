"""/files: the project's files as they are; they are written only where the server was started with `--edit`."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from mergeplan.planner.api.access import Mode, Principal, Scope
from mergeplan.planner.api.context import ApiContext, Closed, Context, NoQuery, require_scope
from mergeplan.planner.api.files import LARGEST, FileText, delete_file, list_files, read_file, write_file
from mergeplan.planner.api.problems import ApiError, problem_responses
from mergeplan.planner.contract.base import Data, Names
from mergeplan.planner.data_field import describe

router = APIRouter(tags=["files"], dependencies=[require_scope(Scope.READ, Mode.PLAN)])
FilePath = Annotated[str, Path(max_length=500, description="the file, from the project's folder")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Nothing = Annotated[NoQuery, Query()]


class FileList(Data):
    """The files that may be read: those that hold settings are not among them."""

    files: Names = Field(description="their paths from the project's folder")


class FileView(Data):
    """A file."""

    path: str = Field(description="its path from the project's folder")
    size: int = Field(description="in bytes")
    content: str | None = Field(description="its text; null: it is too large, or no text")
    digest: str = Field(description="SHA-256 of its bytes: who writes sends it")


class FileBody(Closed):
    """What a file is to say."""

    content: str = Field(max_length=LARGEST, description="its text")
    expected: Digest | None = describe(None, "the `digest` of what it replaces; null: it is new")


class DeleteQuery(Closed):
    """Which version is deleted."""

    expected: Digest = Field(description="the `digest` of what is deleted")


@router.get("/files", summary="List files")
def show_files(context: Context, _: Nothing) -> FileList:
    """List the files of the project that may be read."""
    return FileList(files=tuple(list_files(context.settings.root)))


@router.get("/files/{path:path}", summary="Read a file", responses=problem_responses(404))
def show_file(context: Context, path: FilePath, _: Nothing) -> FileView:
    """Return a file with its text."""
    return _file_view(read_file(context.settings.root, path))


@router.put("/files/{path:path}", summary="Write a file", responses=problem_responses(400, 404, 413))
def put_file(
    context: Context, path: FilePath, body: FileBody, _: Nothing, _who: Annotated[Principal, require_scope(Scope.APPLY)]
) -> FileView:
    """Write a file, if it is still as `expected` says; only where the server was started with `--edit`."""
    _check_edit(context)
    written = write_file(context.settings.root, path, body.content, body.expected)
    context.reader.expire()
    return _file_view(written)


@router.delete("/files/{path:path}", summary="Delete a file", status_code=204, responses=problem_responses(404))
def remove_file(
    context: Context,
    path: FilePath,
    query: Annotated[DeleteQuery, Query()],
    _who: Annotated[Principal, require_scope(Scope.APPLY)],
) -> Response:
    """Delete a file, if it is still as `expected` says; only where the server was started with `--edit`."""
    _check_edit(context)
    delete_file(context.settings.root, path, query.expected)
    context.reader.expire()
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _check_edit(context: ApiContext) -> None:
    if not context.edit:
        raise ApiError(HTTPStatus.FORBIDDEN, "This server writes no files.", hint="Start it with `--edit`.")


def _file_view(file: FileText) -> FileView:
    return FileView(path=file.path, size=file.size, content=file.text, digest=file.digest)
