import assert from "node:assert/strict";
import { test } from "node:test";
import { findCommand } from "../src/command";
import type { Place } from "../src/command";

function place(change: Partial<Place>, ...programs: string[]): Place {
  const isProgram = (file: string): boolean => programs.includes(file);
  return { setting: [], folder: "/w", roots: ["/w/shop"], trusted: true, searchPath: "/usr/bin:/opt/bin", isProgram, ...change };
}

test("the setting is before the project's virtual environment, and that before PATH", () => {
  const programs = ["/w/shop/.venv/bin/mergeplan", "/w/.venv/bin/mergeplan", "/opt/bin/mergeplan"];

  assert.deepEqual(findCommand(place({ setting: ["uv", "run", "mergeplan"] }, ...programs)), ["uv", "run", "mergeplan"]);
  assert.deepEqual(findCommand(place({}, ...programs)), ["/w/shop/.venv/bin/mergeplan"]);
  assert.deepEqual(findCommand(place({}, ...programs.slice(1))), ["/w/.venv/bin/mergeplan"]);
  assert.deepEqual(findCommand(place({}, ...programs.slice(2))), ["/opt/bin/mergeplan"]);
  assert.equal(findCommand(place({})), undefined);
});

test("a path in the setting is of the folder", () => {
  assert.deepEqual(findCommand(place({ setting: ["tools/mergeplan"] })), ["/w/tools/mergeplan"]);
  assert.deepEqual(findCommand(place({ setting: ["${workspaceFolder}/x", "-q"] })), ["/w/x", "-q"]);
});

test("the user's own setting holds in an untrusted folder, unless it names the folder", () => {
  const find = (...setting: string[]) => findCommand(place({ trusted: false, setting }));

  assert.deepEqual(find("/opt/venv/bin/mergeplan"), ["/opt/venv/bin/mergeplan"]);
  assert.equal(find("/opt/../w/shop/mergeplan"), undefined);
  assert.equal(find("tools/mergeplan"), undefined);
  assert.equal(find("mergeplan"), undefined);
  assert.equal(find("/usr/bin/uv", "run", "--project", "${workspaceFolder}", "mergeplan"), undefined);
});

test("no program of an untrusted folder is started", () => {
  const programs = ["/w/shop/.venv/bin/mergeplan", "/w/bin/mergeplan", "bin/mergeplan", "/opt/bin/mergeplan"];
  const searchPath = ":bin:/w/bin:/opt/bin";

  assert.deepEqual(findCommand(place({ trusted: false, setting: ["/w/evil"], searchPath }, ...programs)), ["/opt/bin/mergeplan"]);
  assert.equal(findCommand(place({ trusted: false, searchPath }, ...programs.slice(0, 3))), undefined);
});
