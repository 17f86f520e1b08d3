import assert from "node:assert/strict";
import { test } from "node:test";
import { environmentRows, errorMessage, readLines, testResult } from "../src/jsonLines";

test("lines that are no objects are left out", () => {
  assert.deepEqual(readLines('{"a":1}\nStarting Spark...\n[1]\nnull\n\n{"b"'), [{ a: 1 }]);
});

test("a test's result is read, and no other line", () => {
  const line = { event: "test", name: "t", path: "tests/t.yaml", ok: false, message: "1 row differs", line: 1, unchanged: false };

  assert.deepEqual(testResult(line), { name: "t", path: "tests/t.yaml", ok: false, message: "1 row differs" });
  assert.equal(testResult({ event: "result", ok: true }), undefined);
});

test("an error says what to do", () => {
  assert.equal(errorMessage({ event: "error", message: "No `x`.", hint: "Write it." }), "No `x`. Write it.");
  assert.equal(errorMessage({ event: "error", message: "No `x`." }), "No `x`.");
  assert.equal(errorMessage({ event: "stage" }), undefined);
});

test("environments are rows with what is known of them", () => {
  const rows = [{ name: "prod", revision: 3, promoted_at: "2026-01-01", expires_at: null }, { revision: 1 }];

  const lines = JSON.stringify({ event: "result", environments: rows });
  assert.deepEqual(environmentRows(lines), [{ name: "prod", text: "revision: 3 · promoted at: 2026-01-01" }]);
  assert.deepEqual(environmentRows(""), []);
});
