// Verbs of the program, run as processes: argv and no shell, with a limit of time, ended when the user cancels.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { CancellationToken } from "vscode";

export interface Verb {
  readonly command: readonly string[];
  readonly args: readonly string[];
  readonly cwd: string;
  readonly seconds: number;
  readonly token?: CancellationToken;
  readonly onLine?: (line: string) => void;
}

export interface Finished {
  /** The exit code; null where the process was ended. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const LARGEST = 32 << 20; // characters of an answer
const GRACE = 10_000; // milliseconds from SIGTERM to SIGKILL

/** Run a verb to its end; an Error where it cannot be started, takes too long or answers too much. */
export function runVerb(verb: Verb): Promise<Finished> {
  const [program = "", ...first] = verb.command;
  // Code that a folder brings is isolated, unless the operator says otherwise.
  const env = { MERGEPLAN_ISOLATION: "required", ...process.env, NO_COLOR: "1" };
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...first, ...verb.args], { cwd: verb.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr]: [string[], string[]] = [[], []];
    let [size, refusal]: [number, Error | undefined] = [0, undefined];
    let kill: NodeJS.Timeout | undefined;
    const end = (error?: Error): void => {
      refusal ??= error;
      child.kill("SIGTERM");
      kill ??= setTimeout(() => child.kill("SIGKILL"), GRACE);
    };
    const late = `mergeplan ${verb.args[0]} did not end within ${verb.seconds} seconds.`;
    const limit = setTimeout(() => end(new Error(late)), verb.seconds * 1000);
    const cancelling = verb.token?.onCancellationRequested(() => end());
    const collect = (lines: string[], line: string): void => {
      size += line.length + 1;
      if (size > LARGEST) {
        end(new Error(`mergeplan ${verb.args[0]} answers more than ${LARGEST} characters.`));
      } else {
        lines.push(`${line}\n`);
      }
    };
    createInterface(child.stdout).on("line", (line) => {
      collect(stdout, line);
      verb.onLine?.(line);
    });
    createInterface(child.stderr).on("line", (line) => collect(stderr, line));
    const tidy = (): void => {
      clearTimeout(limit);
      clearTimeout(kill);
      cancelling?.dispose();
    };
    child.on("error", (error) => {
      tidy();
      reject(new Error(`${program} cannot be started: ${error.message}`));
    });
    child.on("close", (code) => {
      tidy();
      if (refusal) {
        reject(refusal);
      } else {
        resolve({ code, stdout: stdout.join(""), stderr: stderr.join("") });
      }
    });
  });
}
