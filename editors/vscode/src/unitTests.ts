// The Testing view: unit tests as the server lists them, run by `mergeplan test`, one process for each project.
import * as path from "node:path";
import * as vscode from "vscode";
import { runVerb } from "./cli";
import { errorMessage, readLines, testResult } from "./jsonLines";
import type { Server, Servers } from "./servers";

interface UnitTest {
  readonly name: string;
  readonly path: string;
  /** From 0. */
  readonly line: number;
  readonly model: string;
}

interface Origin {
  readonly server: Server;
  readonly root: string;
  readonly test: UnitTest;
}

const SECONDS = 1_800;
const DELAY = 1_000; // milliseconds from a change to the next listing

export class UnitTests implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("mergeplan", "mergeplan");
  private readonly origins = new Map<vscode.TestItem, Origin>();
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly servers: Servers) {
    this.controller.refreshHandler = () => this.list();
    this.subscriptions = [
      this.controller,
      this.controller.createRunProfile("Run", vscode.TestRunProfileKind.Run, (request, token) => this.run(request, token), true),
      servers.onDidChange(() => this.listSoon()),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => this.servers.find(uri) && this.listSoon()),
      vscode.workspace.onDidDeleteFiles(() => this.listSoon()),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** Run a test of a file by its name, as its lens asks for; the file is saved first. */
  async runOne(uri: vscode.Uri, name: string): Promise<void> {
    await vscode.workspace.textDocuments.find((document) => String(document.uri) === String(uri))?.save();
    await this.list();
    const item = [...this.origins].find(([{ uri: file }, { test }]) => String(file) === String(uri) && test.name === name)?.[0];
    if (!item) {
      throw new Error(`There is no test \`${name}\` in the saved file.`);
    }
    const cancellation = new vscode.CancellationTokenSource();
    await this.run(new vscode.TestRunRequest([item]), cancellation.token);
  }

  private listSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.list(), DELAY);
  }

  private async list(): Promise<void> {
    const groups = await Promise.all(
      this.servers.all.flatMap((server) => server.roots.map((root) => this.listProject(server, root))),
    );
    const several = groups.length > 1;
    this.origins.clear();
    this.controller.items.replace(groups.flatMap(({ server, root, tests }) => {
      const files = this.makeItems(server, root, tests);
      if (!several || files.length === 0) {
        return files;
      }
      const folder = this.controller.createTestItem(root, path.basename(root), vscode.Uri.file(root));
      folder.children.replace(files);
      return [folder];
    }));
  }

  private async listProject(server: Server, root: string): Promise<{ server: Server; root: string; tests: UnitTest[] }> {
    try {
      const uri = String(vscode.Uri.file(root));
      return { server, root, tests: await server.client.sendRequest<UnitTest[]>("mergeplan/tests", { root: uri }) };
    } catch (error) {
      this.servers.output.warn(`${root}: its unit tests are not listed: ${String(error)}`);
      return { server, root, tests: [] };
    }
  }

  private makeItems(server: Server, root: string, tests: readonly UnitTest[]): vscode.TestItem[] {
    const files = new Map<string, vscode.TestItem>();
    for (const test of tests) {
      const uri = vscode.Uri.file(path.join(root, test.path));
      const file = files.get(test.path) ?? this.controller.createTestItem(`${root}\n${test.path}`, test.path, uri);
      files.set(test.path, file);
      const item = this.controller.createTestItem(`${file.id}\n${test.name}`, test.name, uri);
      item.description = test.model;
      item.range = new vscode.Range(test.line, 0, test.line, 0);
      file.children.add(item);
      this.origins.set(item, { server, root, test });
    }
    return [...files.values()];
  }

  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const run = this.controller.createTestRun(request);
    const items = this.leaves(request);
    try {
      for (const root of new Set(items.map(([, origin]) => origin.root))) {
        const own = items.filter(([, origin]) => origin.root === root);
        if (!token.isCancellationRequested) {
          await this.runProject(run, root, own, token);
        }
      }
    } finally {
      run.end();
    }
  }

  private leaves(request: vscode.TestRunRequest): [vscode.TestItem, Origin][] {
    const chosen = request.include ?? [...this.controller.items].map(([, item]) => item);
    const excluded = new Set(request.exclude ?? []);
    const isIn = (item: vscode.TestItem | undefined, set: ReadonlySet<vscode.TestItem>): boolean =>
      item !== undefined && (set.has(item) || isIn(item.parent, set));
    const included = new Set(chosen);
    return [...this.origins].filter(([item]) => isIn(item, included) && !isIn(item, excluded));
  }

  private async runProject(
    run: vscode.TestRun, root: string, items: readonly [vscode.TestItem, Origin][], token: vscode.CancellationToken,
  ): Promise<void> {
    const server = items[0]?.[1].server;
    if (!server) {
      return;
    }
    const waiting = new Map(items.map(([item, { test }]) => [`${test.path}::${test.name}`, item]));
    const fail = (why: string): void => waiting.forEach((item) => run.errored(item, new vscode.TestMessage(why)));
    if (!vscode.workspace.isTrusted) {
      fail("Trust the folder to run its tests.");
      return;
    }
    waiting.forEach((item) => run.started(item));
    const errors: string[] = [];
    const onLine = (text: string): void => {
      for (const line of readLines(text)) {
        errors.push(...[errorMessage(line) ?? []].flat());
        const result = testResult(line);
        const item = result && waiting.get(`${result.path}::${result.name}`);
        if (result && item) {
          waiting.delete(`${result.path}::${result.name}`);
          report(run, item, result.ok, result.message);
        }
      }
    };
    const args = ["test", "--output", "json", ...server.options, "--project", root, "--", ...waiting.keys()];
    try {
      const finished = await runVerb({ command: server.command, args, cwd: root, seconds: SECONDS, token, onLine });
      run.appendOutput(finished.stderr.replaceAll("\n", "\r\n"));
      if (!token.isCancellationRequested) {
        fail(errors[0] ?? (finished.stderr.trim() || `mergeplan test ended with code ${finished.code}.`));
      }
    } catch (error) {
      fail(error instanceof Error ? error.message : String(error));
    }
  }
}

function report(run: vscode.TestRun, item: vscode.TestItem, ok: boolean, why: string): void {
  run.appendOutput(`${item.label}: ${ok ? "passed" : "failed"}\r\n${why.replaceAll("\n", "\r\n")}`, undefined, item);
  if (ok) {
    run.passed(item);
    return;
  }
  const message = new vscode.TestMessage(why || "It failed.");
  if (item.uri && item.range) {
    message.location = new vscode.Location(item.uri, item.range);
  }
  run.failed(item, message);
}
