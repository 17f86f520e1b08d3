import assert from "node:assert/strict";
import { test } from "node:test";
import { securePage } from "../src/page";
import { CONFIG_SCHEMA, schemaOf } from "../src/schema";

test("the policy is the first thing in the head, and allows no script", () => {
  const page = securePage('<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>');

  assert.match(page, /<head><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">/);
  assert.throws(() => securePage("<body><script></script></body>"), /no head/);
});

test("config.yaml of a project alone has the schema", () => {
  assert.equal(schemaOf("/w/shop/config.yaml", ["/w/shop"]), CONFIG_SCHEMA);
  assert.equal(schemaOf("/w/helm/config.yaml", ["/w/shop"]), undefined);
  assert.equal(schemaOf("/w/shop/models/config.yaml", ["/w/shop"]), undefined);
});
