// `mergeplan ui` of a project, started when a panel first asks: on this machine, with a token that only the extension has.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

export interface PagesOf {
  readonly command: readonly string[];
  readonly options: readonly string[];
  readonly root: string;
}

const START = 120_000; // milliseconds
const ANSWER = 60_000;
const LARGEST = 16 << 20; // characters of a page

/** The server of one project. */
export class PageServer {
  private readonly token = randomBytes(32).toString("hex");
  private readonly child: ChildProcess;
  private readonly address: Promise<string>;
  private said = "";
  ended = false;

  constructor({ command: [program = "", ...first], options, root }: PagesOf) {
    const args = [...first, "ui", "--port", "0", "--mode", "plan", ...options, "--project", root];
    // The mode and the scope of the token forbid what changes an environment.
    const env = { MERGEPLAN_ISOLATION: "required", ...process.env, MERGEPLAN_API_PLAN_TOKEN: this.token, NO_COLOR: "1" };
    this.child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    this.child.stderr?.on("data", (data: Buffer) => {
      this.said = `${this.said}${String(data)}`.slice(-4_000);
    });
    this.address = this.waitForAddress();
    this.address.catch(() => undefined); // who asks for a page hears of it
  }

  /** The text of a page, or of an answer of the API. */
  async get(path: string): Promise<string> {
    return this.ask(path, { method: "GET" });
  }

  /** Send JSON to the API. */
  async post(path: string, body: unknown): Promise<string> {
    return this.ask(path, { method: "POST", body: JSON.stringify(body) });
  }

  dispose(): void {
    this.child.kill("SIGTERM");
  }

  private async ask(path: string, { method, body }: { method: string; body?: string }): Promise<string> {
    const url = new URL(path, await this.address);
    if (url.origin !== new URL(await this.address).origin) {
      throw new Error(`${path} is not an address of the project's pages.`);
    }
    const headers = { "Authorization": `Bearer ${this.token}`, "Content-Type": "application/json" };
    const answer = await fetch(url, {
      method, headers, ...(body === undefined ? {} : { body }), redirect: "manual", signal: AbortSignal.timeout(ANSWER),
    });
    const text = await answer.text();
    if (answer.status >= 400) {
      throw new Error(problem(text) ?? `${path} answers ${answer.status}.`);
    }
    if (text.length > LARGEST) {
      throw new Error(`${path} answers more than ${LARGEST} characters.`);
    }
    return text;
  }

  private waitForAddress(): Promise<string> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error("mergeplan ui did not start.")), START);
      const lines = this.child.stdout && createInterface(this.child.stdout);
      lines?.on("line", (line) => {
        if (/^http:\/\/127\.0\.0\.1:\d+\/$/.test(line)) {
          clearTimeout(late);
          resolve(line);
        }
      });
      this.child.on("error", (error) => reject(new Error(`mergeplan ui cannot be started: ${error.message}`)));
      this.child.on("close", (code) => {
        this.ended = true;
        clearTimeout(late);
        reject(new Error(this.said.trim() || `mergeplan ui ended with code ${code}.`));
      });
    });
  }
}

/** The sentence of an error that the API answers with. */
function problem(text: string): string | undefined {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    return typeof detail === "string" ? detail : undefined;
  } catch {
    return undefined;
  }
}
