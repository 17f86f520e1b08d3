import assert from "node:assert/strict";
import { test } from "node:test";
import { claimedGlobs, findRoots, isProject, isWatched, rootOf, shareRoots } from "../src/project";

function disk(...files: string[]): (file: string) => boolean {
  return (file) => files.some((known) => known === file || known.startsWith(`${file}/`));
}

test("a configuration without models is no project, and a dbt project needs none", () => {
  const exists = disk("/w/helm/config.yaml", "/w/shop/config.yaml", "/w/shop/models/a.sql", "/w/dbt/dbt_project.yml");

  assert.equal(isProject("/w/helm", exists), false);
  assert.equal(isProject("/w/shop", exists), true);
  assert.equal(isProject("/w/dbt", exists), true);
});

test("of dbt's projects and of pipelines every file is claimed, of ours its folders", () => {
  const exists = disk("/w/pipe/spark-pipeline.yml", "/w/shop/config.yaml", "/w/shop/models/a.sql");

  assert.equal(isProject("/w/pipe", exists), true);
  assert.deepEqual(claimedGlobs("/w/pipe", exists), ["**/*.{sql,yaml,yml}"]);
  assert.equal(claimedGlobs("/w/shop", exists).some((glob) => glob.startsWith("**")), false);
});

test("a folder inside a project has the project above it", () => {
  const exists = disk("/w/shop/config.py", "/w/shop/models/staging/a.sql");

  assert.deepEqual(findRoots([], ["/w/shop/models/staging"], exists), ["/w/shop"]);
  assert.deepEqual(findRoots([], ["/w/other"], exists), []);
});

test("a project has one server: that of the innermost folder around it", () => {
  const shares = shareRoots(["/w/a", "/w/b/c"], ["/w", "/w/b", "/w/b/c/models"]);

  assert.deepEqual([...shares], [["/w", ["/w/a"]], ["/w/b", ["/w/b/c"]]]);
});

test("a project above the folders belongs to one of them", () => {
  assert.deepEqual([...shareRoots(["/w"], ["/w/models", "/w/tests2"])], [["/w/models", ["/w"]]]);
});

test("a file belongs to the innermost project around it", () => {
  assert.equal(rootOf("/w/a/b/models/x.sql", ["/w/a", "/w/a/b"]), "/w/a/b");
  assert.equal(rootOf("/w/ab/x.sql", ["/w/a"]), undefined);
  assert.equal(rootOf("/w/a/..x/y.sql", ["/w/a"]), "/w/a");
});

test("what tools write is not watched", () => {
  assert.equal(isWatched("models/a.sql"), true);
  assert.equal(isWatched(".venv/lib/a.py"), false);
  assert.equal(isWatched("target/compiled/a.sql"), false);
});
