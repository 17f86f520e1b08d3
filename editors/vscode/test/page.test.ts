import assert from "node:assert/strict";
import { test } from "node:test";
import { panelPage, securePage, styleAddress } from "../src/page";
import { schemaOf } from "../src/schema";

test("the policy is the first thing in the head, and allows no script", () => {
  const page = securePage('<!doctype html><html><head><meta charset="utf-8"></head><body></body></html>');

  assert.match(page, /<head><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">/);
  assert.throws(() => securePage("<body><script></script></body>"), /no head/);
});

test("of a page for a panel no script, form or link of its own is left", () => {
  const html = '<html><head><meta http-equiv="refresh" content="3"><link rel="stylesheet" href="/assets/a.css"><script src="/x.js"></script></head>'
    + '<body><a class="b" href="/lineage?focus=a&amp;up=2">x</a><a href="https://example.com">y</a></body></html>';
  const page = panelPage(html, "body { color: red } </style>", "/w/shop");

  assert.equal(styleAddress(html), "/assets/a.css");
  assert.doesNotMatch(page, /<script|<link|refresh/);
  assert.doesNotMatch(page, /red } <\/style>/);
  assert.match(page, /href="command:mergeplan\.openPage\?%5B%22%2Fw%2Fshop%22%2C%22%2Flineage%3Ffocus%3Da%26up%3D2%22%5D"/);
  assert.match(page, /form, \.top/);
});

test("files of a project alone have a schema", () => {
  assert.match(schemaOf("/w/shop/config.yaml", ["/w/shop"]) ?? "", /config\.json$/);
  assert.match(schemaOf("/w/shop/tests/a/test_b.yml", ["/w/shop"]) ?? "", /tests\.json$/);
  assert.match(schemaOf("/w/shop/external_models.yaml", ["/w/shop"]) ?? "", /external_models\.json$/);
  assert.equal(schemaOf("/w/helm/config.yaml", ["/w/shop"]), undefined);
  assert.equal(schemaOf("/w/shop/models/config.yaml", ["/w/shop"]), undefined);
});
