// Which program is started: that of the setting, of the project's virtual environment, or of PATH.
import * as path from "node:path";

export interface Place {
  /** The setting `mergeplan.command`; of an untrusted folder, the editor reads that of the user alone. */
  readonly setting: readonly string[];
  /** The workspace folder, and the projects in it. */
  readonly folder: string;
  readonly roots: readonly string[];
  readonly trusted: boolean;
  /** The variable PATH. */
  readonly searchPath: string;
  readonly isProgram: (file: string) => boolean;
}

const ENVIRONMENTS = [".venv", "venv"];
const NAME = "mergeplan";

/** The program and its first arguments; undefined where there is none. Of an untrusted folder, no file is started. */
export function findCommand(place: Place): readonly string[] | undefined {
  if (place.setting[0] && (place.trusted || isApart(place.setting, place))) {
    return resolveSetting(place.setting, place.folder);
  }
  if (place.trusted) {
    for (const folder of [...place.roots, place.folder]) {
      for (const environment of ENVIRONMENTS) {
        const program = path.join(folder, environment, "bin", NAME);
        if (place.isProgram(program)) {
          return [program];
        }
      }
    }
  }
  const program = place.searchPath
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder) && (place.trusted || !isOfFolder(path.normalize(folder), place)))
    .map((folder) => path.join(folder, NAME))
    .find(place.isProgram);
  return program === undefined ? undefined : [program];
}

/** True for a setting that starts nothing of the folder, whatever the folder holds. */
function isApart(setting: readonly string[], place: Place): boolean {
  const [program = ""] = setting;
  const namesFolder = setting.some((word) => word.includes("${workspaceFolder}"));
  return path.isAbsolute(program) && !isOfFolder(path.normalize(program), place) && !namesFolder;
}

function isOfFolder(folder: string, place: Place): boolean {
  return [place.folder, ...place.roots].some((root) => folder === root || folder.startsWith(root + path.sep));
}

function resolveSetting(setting: readonly string[], folder: string): readonly string[] {
  const [program = "", ...rest] = setting.map((word) => word.replaceAll("${workspaceFolder}", folder));
  const isPath = program.includes(path.sep) && !path.isAbsolute(program);
  return [isPath ? path.join(folder, program) : program, ...rest];
}
