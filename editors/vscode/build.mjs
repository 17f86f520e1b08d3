// The extension as one file, with the schemas of YAML files beside it; `--tests`: its unit tests, for node's runner.
import { build } from "esbuild";
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";

const shared = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  rmSync("build/tests", { recursive: true, force: true });
  const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...shared, entryPoints, outdir: "build/tests", sourcemap: "inline" });
} else {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("build", { recursive: true });
  const outcome = await build({
    ...shared, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js", external: ["vscode"], minify: true, metafile: true,
  });
  writeFileSync("dist/licenses.txt", licenses(Object.keys(outcome.metafile.inputs)));
  for (const name of ["config", "tests", "external_models", "exposures"]) {
    cpSync(`../../docs/schema/${name}.json`, `dist/schemas/${name}.json`);
  }
  cpSync("../../LICENSE", "LICENSE");
}

/** The licenses of the packages whose files are part of the bundle. */
function licenses(files) {
  const folders = files.flatMap((file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  return [...new Set(folders)].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (!file) {
      throw new Error(`${name} has no file with its license.`);
    }
    return `${name} ${version}\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
  }).join(`\n${"-".repeat(80)}\n\n`);
}
