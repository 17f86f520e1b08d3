import assert from "node:assert/strict";
import { test } from "node:test";
import type { CancellationToken } from "vscode";
import { runVerb } from "../src/cli";

const node = { command: [process.execPath], cwd: "/", seconds: 20 };

test("a verb's lines come one by one, and its code at the end", async () => {
  const lines: string[] = [];
  const script = "console.log('a; $(b)'); console.error('c'); process.exit(3)";

  const finished = await runVerb({ ...node, args: ["-e", script], onLine: (line) => lines.push(line) });
  assert.deepEqual([finished, lines], [{ code: 3, stdout: "a; $(b)\n", stderr: "c\n" }, ["a; $(b)"]]);
});

test("project code is isolated unless the operator says otherwise", async () => {
  delete process.env["MERGEPLAN_ISOLATION"];
  const args = ["-p", "process.env.MERGEPLAN_ISOLATION"];

  assert.equal((await runVerb({ ...node, args })).stdout, "required\n");
  process.env["MERGEPLAN_ISOLATION"] = "none";
  assert.equal((await runVerb({ ...node, args })).stdout, "none\n");
});

test("a verb that takes too long is ended with a sentence", async () => {
  const slow = runVerb({ ...node, args: ["-e", "setInterval(() => 0, 1000)"], seconds: 0.3 });

  await assert.rejects(slow, /did not end within 0.3 seconds/);
});

test("a verb that is cancelled ends", async () => {
  const onCancellationRequested = (listener: () => void) => {
    setTimeout(listener, 200);
    return { dispose: () => undefined };
  };
  const token = { isCancellationRequested: false, onCancellationRequested } as unknown as CancellationToken;

  const finished = await runVerb({ ...node, args: ["-e", "setInterval(() => 0, 1000)"], token });
  assert.equal(finished.code, null);
});

test("a program that is not there is an error with its name", async () => {
  await assert.rejects(runVerb({ ...node, command: ["/nowhere/mergeplan"], args: ["test"] }), /\/nowhere\/mergeplan cannot be started/);
});
