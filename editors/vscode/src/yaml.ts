// The schema of config.yaml for the YAML extension, if there is one: for projects alone, and from a file of ours.
import { readFileSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";
import * as schema from "./schema";
import type { Servers } from "./servers";

interface YamlExtension {
  registerContributor(
    name: string, schemaOf: (uri: string) => string | undefined, content: (schemaUri: string) => string | undefined,
  ): boolean;
}

/** Tell the YAML extension which files have our schema; nothing where there is no such extension. */
export async function addSchemas(context: vscode.ExtensionContext, servers: Servers): Promise<void> {
  const extension = vscode.extensions.getExtension<YamlExtension | undefined>("redhat.vscode-yaml");
  const yaml = await extension?.activate();
  const content = readFileSync(path.join(context.extensionPath, "dist", "schemas", "config.json"), "utf8");
  yaml?.registerContributor(
    schema.SCHEME,
    (uri) => schema.schemaOf(vscode.Uri.parse(uri).fsPath, servers.all.flatMap(({ roots }) => roots)),
    (uri) => (uri === schema.CONFIG_SCHEMA ? content : undefined),
  );
}
