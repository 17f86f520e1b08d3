import assert from "node:assert/strict";
import { test } from "node:test";
import { effectAt, headline } from "../src/effects";

const orders = { model: "shop.orders", line: 0, title: "Non-breaking", text: "Non-breaking: Only adds `tax`. · computes 1 table" };
const totals = { model: "shop.totals", line: 20, title: "Breaking", text: "Breaking: `amount` has other values." };

test("the effect is that of the block around the cursor", () => {
  assert.equal(effectAt([totals, orders], 19)?.model, "shop.orders");
  assert.equal(effectAt([totals, orders], 20)?.model, "shop.totals");
  assert.equal(effectAt([totals], 3)?.model, "shop.totals");
  assert.equal(effectAt([], 3), undefined);
});

test("a headline has the reason and fits the bar", () => {
  const long = headline({ ...orders, text: `Non-breaking: ${"x".repeat(200)}` });

  assert.equal(headline(orders).text, "$(git-compare) Non-breaking: Only adds `tax`. · computes 1 table");
  assert.equal(long.text.length, "$(git-compare) ".length + 80);
  assert.ok(long.text.endsWith("…") && long.tooltip.includes("x".repeat(200)));
});

test("what breaks or is blocked warns, and nothing else", () => {
  assert.equal(headline(orders).isWarning, false);
  assert.equal(headline(totals).isWarning, true);
  assert.equal(headline({ ...orders, text: `${orders.text} · blocked: no` }).isWarning, true);
});

test("a text cannot draw an icon", () => {
  assert.ok(!headline({ ...orders, text: "$(flame)" }).text.includes("$(flame)"));
});
