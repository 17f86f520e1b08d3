// Which folders are projects, and which of their files the server reads: what planner/lsp/editor.py says, in layout.json.
import * as path from "node:path";
import layout from "./layout.json";

/** The files that make a folder a project, as a glob. */
export const CONFIG_GLOB = `**/{${layout.configs.join(",")}}`;
export const EXCLUDED_GLOB = "**/{node_modules,.*,venv,dbt_packages,target,site-packages}/**";
/** The files of a project whose text the server reads, as globs from its folder: of dbt's and of a pipeline, all. */
export function claimedGlobs(root: string, exists: Exists): readonly string[] {
  if (isForeign(root, exists)) {
    return ["**/*.{sql,yaml,yml}"];
  }
  return [
    `{${layout.folders.join(",")}}/**/*.{sql,yaml,yml}`,
    `{${layout.codeFolders.join(",")}}/**/*.py`,
    `{${layout.texts.join(",")}}`,
  ];
}
/** The files of a project whose change on the disk may change what the server knows. */
export const WATCHED_GLOB = "**/*.{sql,py,yaml,yml,csv}";
const UNWATCHED = new Set(["node_modules", "venv", "target", "dbt_packages", "logs"]);

type Exists = (file: string) => boolean;

/** True for a folder that is a project: of dbt, a pipeline, or a configuration beside `models`. */
export function isProject(folder: string, exists: Exists): boolean {
  const configs = layout.configs.filter((name) => exists(path.join(folder, name)));
  return isForeign(folder, exists) || (configs.length > 0 && exists(path.join(folder, "models")));
}

function isForeign(folder: string, exists: Exists): boolean {
  return layout.foreign.some((name) => exists(path.join(folder, name)));
}

/** The projects among the folders of configuration files, and the nearest one at or above each workspace folder. */
export function findRoots(configs: readonly string[], folders: readonly string[], exists: Exists): string[] {
  const inside = configs.map((file) => path.dirname(file)).filter((folder) => isProject(folder, exists));
  const above = folders.flatMap((folder) => parents(folder).find((parent) => isProject(parent, exists)) ?? []);
  return [...new Set([...inside, ...above])].sort();
}

/** The projects of each workspace folder: a project has one owner, the innermost folder around it or below it. */
export function shareRoots(roots: readonly string[], folders: readonly string[]): Map<string, string[]> {
  const shares = new Map<string, string[]>();
  for (const root of roots) {
    const around = folders.filter((folder) => isWithin(root, folder));
    const below = folders.filter((folder) => isWithin(folder, root));
    const owner = longest(around) ?? longest(below);
    if (owner !== undefined) {
      shares.set(owner, [...(shares.get(owner) ?? []), root]);
    }
  }
  return shares;
}

/** The innermost project around a file. */
export function rootOf(file: string, roots: Iterable<string>): string | undefined {
  return longest([...roots].filter((root) => isWithin(file, root)));
}

/** True for a changed file of which the server must hear, by its path from the project's folder. */
export function isWatched(relative: string): boolean {
  return !relative.split(/[\\/]/).some((name) => name.startsWith(".") || UNWATCHED.has(name));
}

/** True for a file in a folder, and for the folder itself. */
export function isWithin(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return relative === "" || (relative !== ".." && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative));
}

function parents(folder: string): string[] {
  const parent = path.dirname(folder);
  return parent === folder ? [folder] : [folder, ...parents(parent)];
}

function longest(paths: readonly string[]): string | undefined {
  return [...paths].sort((one, other) => other.length - one.length)[0];
}
