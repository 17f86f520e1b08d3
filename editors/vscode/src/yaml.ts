// The schemas of our YAML files for the YAML extension, if there is one: for projects alone, and from files of ours.
import { existsSync, readFileSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import * as schema from "./schema";
import type { Servers } from "./servers";

interface YamlExtension {
  registerContributor(
    name: string, schemaOf: (uri: string) => string | undefined, content: (schemaUri: string) => string | undefined,
  ): boolean;
}

/** Tell the YAML extension which files have a schema of ours; nothing where there is no such extension. */
export async function addSchemas(context: vscode.ExtensionContext, servers: Servers): Promise<void> {
  const extension = vscode.extensions.getExtension<YamlExtension | undefined>("redhat.vscode-yaml");
  const yaml = await extension?.activate();
  const folder = path.join(context.extensionPath, "dist", "schemas");
  // The files of a dbt project have the schemas of dbt.
  const roots = (): string[] => servers.all.flatMap((server) => [...server.roots]).filter((root) => !existsSync(path.join(root, "dbt_project.yml")));
  yaml?.registerContributor(
    schema.SCHEME,
    (uri) => schema.schemaOf(vscode.Uri.parse(uri).fsPath, roots()),
    (uri) => {
      const name = schema.schemaName(uri);
      return name === undefined ? undefined : readFileSync(path.join(folder, `${name}.json`), "utf8");
    },
  );
}
