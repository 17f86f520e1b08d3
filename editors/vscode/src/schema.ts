// Which schema a YAML file has: those of config.yaml and of our other files are published (docs/schema) and part of the extension.
import * as path from "node:path";

export const SCHEME = "mergeplan-schema";
const SINGLE = new Set(["config", "external_models", "exposures"]); // files beside config.yaml
const FOLDERS = new Set(["tests", "external_models", "exposures"]);
export const SCHEMAS: readonly string[] = [...new Set([...SINGLE, ...FOLDERS])];

/** The schema's address for a file of these projects; undefined for any other file. */
export function schemaOf(file: string, roots: Iterable<string>): string | undefined {
  const suffix = path.extname(file);
  const root = [...roots].filter((folder) => file.startsWith(folder + path.sep)).sort((a, b) => b.length - a.length)[0];
  if (root === undefined || ![".yaml", ".yml"].includes(suffix)) {
    return undefined;
  }
  const parts = path.relative(root, file).split(path.sep);
  const name = parts.length === 1 ? path.basename(file, suffix) : (parts[0] ?? "");
  return (parts.length === 1 ? SINGLE : FOLDERS).has(name) ? addressOf(name) : undefined;
}

/** The name of a schema by its address; undefined for another address. */
export function schemaName(address: string): string | undefined {
  return SCHEMAS.find((name) => addressOf(name) === address);
}

function addressOf(name: string): string {
  return `${SCHEME}://schemas/${name}.json`;
}
