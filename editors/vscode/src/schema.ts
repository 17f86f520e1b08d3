// Which schema a YAML file has: that of config.yaml is published (docs/schema/config.json) and is part of the extension.
import * as path from "node:path";

export const SCHEME = "mergeplan-schema";
export const CONFIG_SCHEMA = `${SCHEME}://schemas/config.json`;

/** The schema's address for a file of these projects; undefined for any other file. */
export function schemaOf(file: string, roots: Iterable<string>): string | undefined {
  const isConfig = ["config.yaml", "config.yml"].includes(path.basename(file));
  return isConfig && [...roots].includes(path.dirname(file)) ? CONFIG_SCHEMA : undefined;
}
