"""The session that each thread works in, and the statements of all threads, which are cancelled at once."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from mergeplan.planner.engine.protocol import Operation, OperationGone, Operations
from mergeplan.planner.engine.spark.errors import WRAPPER, explain_unwritable, is_spark, translate_error
from mergeplan.planner.engine.spark.session import EngineSession, Frame, ServerOperations
from mergeplan.planner.errors import Cancelled, QueryError, RequestError, SparkUnavailable
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.first_alone import FirstAlone
from mergeplan.planner.parsing.sql.function_calls import find_closed_call

T = TypeVar("T")


class Sessions:
    """The session that all threads share, and those that single threads have within `separate_session`."""

    def __init__(
        self, session: EngineSession, functions: frozenset[str] = frozenset(), folder: Path | None = None
    ) -> None:
        self.shared = session
        self.folder = folder  # of the embedded catalog
        self.functions = functions  # that SQL may call beside Spark's own
        self._thread = threading.local()
        self._own: list[EngineSession] = []
        self._lock = threading.RLock()  # a signal's handler may come in on top of a statement
        self._era = 0  # counts the calls of cancel()
        self._under_way: dict[int, int] = {}
        self.operations = 0  # running writes that continue without us
        self.new_schemas = FirstAlone()  # by name: in which something is created
        self.is_lost = False  # Spark ended, ran out of memory or stopped answering

    @property
    def current(self) -> EngineSession:
        thread_session: EngineSession | None = getattr(self._thread, "session", None)
        return thread_session or self.shared

    @contextmanager
    def separate_session(self, before: Sequence[str], after: Sequence[str]) -> Iterator[None]:
        if not before and not after:
            yield
            return
        with self._use_session(self.shared.new_session):
            self._run_all(before)
            yield
            self._run_all(after)

    @contextmanager
    def temporary_view(self, frame: Frame) -> Iterator[str]:
        view = f"mergeplan_{uuid4().hex}"
        frame.createOrReplaceTempView(view)
        try:
            yield view
        finally:
            self.run(f"DROP VIEW IF EXISTS {view}")

    @contextmanager
    def reattaching(self, operations: Operations) -> Iterator[None]:
        """Record what this thread writes by `write_once` within the context; it may outlast this process."""
        self._thread.operations = operations
        try:
            yield
        finally:
            self._thread.operations = None

    @contextmanager
    def guarding(self, check: Callable[[], None]) -> Iterator[None]:
        outer = self._guards
        self._thread.guards = (*outer, check)
        try:
            yield
        finally:
            self._thread.guards = outer

    @property
    def _guards(self) -> tuple[Callable[[], None], ...]:
        guards: tuple[Callable[[], None], ...] = getattr(self._thread, "guards", ())
        return guards

    @property
    def attempt(self) -> str:
        """The name (32 hex digits) of a write: of the operation that it is, or a new one."""
        operation: Operation | None = getattr(self._thread, "operation", None)
        return (operation.id if operation else str(uuid4())).replace("-", "")

    def write_once(self, inputs: Sequence[object], write: Callable[[], T]) -> T:
        """Return the result of `write`, which does all that these `inputs` describe.

        If Spark continues writes without us, a write that an earlier run began for the same inputs is taken up. If that
        one fails, the write is done again.
        """
        operations, server = self._lasting_operations()
        if operations is None or server is None:
            return write()
        key = digest(*map(repr, inputs))
        if leftover := operations.take_leftover(key):
            with suppress(OperationGone, QueryError, RequestError), self._use_session(lambda: server.attach(leftover)):
                operations.report_resumed()
                return self._write_under(leftover, write)
            server.end(leftover)
            operations.report_repeated()
        operation = server.new()
        operations.begin(key, operation)
        return self._write_under(operation, write)

    @property
    def outlasts(self) -> bool:
        """True if what this thread writes continues without us."""
        return self._lasting_operations()[1] is not None

    def _lasting_operations(self) -> tuple[Operations | None, ServerOperations | None]:
        """Return the record of operations, and the server that continues them if there is one.

        There is no server in a separate session, which depends on its statements.
        """
        operations: Operations | None = getattr(self._thread, "operations", None)
        return operations, (self.shared.operations if operations and self.current is self.shared else None)

    def _write_under(self, operation: Operation, write: Callable[[], T]) -> T:
        server = self.current.operations
        assert server is not None
        self._thread.operation = operation
        with self._lock:
            self.operations += 1
        try:
            with server.writing(operation):
                return write()
        finally:
            self._thread.operation = None
            with self._lock:
                self.operations -= 1

    @contextmanager
    def _use_session(self, open_session: Callable[[], EngineSession]) -> Iterator[None]:
        with self.statement():
            session = open_session()
        self._thread.session = session
        with self._lock:
            self._own.append(session)
        try:
            yield
        finally:
            del self._thread.session
            with self._lock:
                self._own.remove(session)
            session.let_go()

    @contextmanager
    def having(self, settings: Mapping[str, str]) -> Iterator[None]:
        """Give this thread's own session these settings within the context; open one if the thread has none."""
        if self.current is self.shared:
            with self._use_session(self.shared.new_session), self.having(settings):
                yield
            return
        conf = self.current.spark.conf
        try:
            with self.statement():
                for key, value in settings.items():
                    conf.set(key, value)
            yield
        finally:
            with suppress(Exception):  # of a Spark that is gone: its last error is reported
                for key in settings:
                    conf.unset(key)

    def _run_all(self, statements: Sequence[str]) -> None:
        for text in statements:
            with self.statement(text):
                self.run(text)

    @contextmanager
    def statement(self, sql: str = "") -> Iterator[None]:
        """Tag a request's jobs and translate its errors; raise RequestError for any text with a closed function."""
        self.judge(sql)
        with self._lock:
            era = self._era
            self._under_way[era] = self._under_way.get(era, 0) + 1
        outer: int | None = getattr(self._thread, "era", None)
        self._thread.era = era
        try:
            self.current.enter(self._era_tag(era))
            yield
            self._raise_if_cancelled()
        except Exception as error:
            if not is_spark(error):
                raise
            self._raise_if_cancelled()
            reason = translate_error(error, sql)
            reason = explain_unwritable(reason, self.folder) if self.folder else reason
            self.is_lost |= isinstance(reason, SparkUnavailable)
            raise reason from None
        finally:
            self._thread.era = outer
            with self._lock:
                self._under_way[era] -= 1
                if not self._under_way[era]:
                    del self._under_way[era]

    def check(self) -> None:
        """Raise Cancelled, or what a guard of the writes raises; call it before each step that cannot be undone."""
        self._raise_if_cancelled()
        for guard in self._guards:
            guard()

    def _raise_if_cancelled(self) -> None:
        if self._thread.era != self._era:
            raise Cancelled("the query was cancelled.")

    def run(self, sql: str) -> Frame:
        self.judge(sql)
        return self.current.sql(sql)

    def judge(self, sql: str) -> None:
        """Raise RequestError for a text with a closed function."""
        if refused := find_closed_call(sql, self.functions):
            raise RequestError(refused.message, hint=refused.hint)

    def query(self, sql: str) -> Frame:
        return self.run(wrap_query(sql))

    def cancel(self) -> None:
        """End what runs now; never block, as a signal handler may call it."""
        with self._lock:
            era, self._era = self._era, self._era + 1
            if self._under_way.get(era):
                threading.Thread(target=self._interrupt_era, args=(era,), daemon=True).start()

    def _interrupt_era(self, era: int) -> None:
        """Interrupt until every statement of the era has ended: one may be just about to start its job."""
        pause = threading.Event()
        while self._under_way.get(era):
            for session in (self.shared, *tuple(self._own)):
                # One may be closing; and where Spark is gone, the statements end by themselves.
                with suppress(Exception):
                    session.interrupt(self._era_tag(era))
            pause.wait(0.2)

    def _era_tag(self, era: int) -> str:
        return f"mergeplan-{id(self)}-{era}"


def wrap_query(sql: str) -> str:
    """Return the query inside another, so that a text that is a command is refused and not run."""
    return f"{WRAPPER}{sql.rstrip().rstrip(';')}\n)"
