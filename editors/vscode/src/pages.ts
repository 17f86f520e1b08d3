// The graph as a panel, environments, and the comparison with one: what the program's verbs print of saved files.
import * as vscode from "vscode";
import { runVerb } from "./cli";
import { environmentRows, errorMessage, readLines } from "./jsonLines";
import { securePage } from "./page";
import type { Server } from "./servers";
import type { Texts } from "./texts";

const SECONDS = 120;
const SPARK_SECONDS = 900; // of a verb that reads rows

export interface Place {
  readonly server: Server;
  readonly root: string;
}

/** Open a panel with the page that a verb prints as HTML. */
export async function showPage(place: Place, title: string, args: readonly string[]): Promise<void> {
  const html = await answer(place, title, [...args, "--output", "html"]);
  if (html !== undefined) {
    const column = vscode.ViewColumn.Beside;
    const panel = vscode.window.createWebviewPanel("mergeplan.page", title, { viewColumn: column, preserveFocus: true }, {
      enableScripts: false,
      enableForms: false,
      enableCommandUris: false,
      localResourceRoots: [],
    });
    panel.webview.html = securePage(html);
  }
}

/** The environments, as rows to pick from; undefined where it was cancelled. */
export async function listEnvironments(place: Place): Promise<vscode.QuickPickItem[] | undefined> {
  const listed = await answer(place, "Environments", ["environments", "--output", "json"]);
  return listed === undefined ? undefined : environmentRows(listed).map(({ name, text }) => ({ label: name, description: text }));
}

/** Show how the saved files differ from an environment. */
export async function compare(place: Place, texts: Texts, environment: string): Promise<void> {
  const text = await answer(place, `Difference from ${environment}`, ["diff", environment], [0, 1]);
  if (text !== undefined) {
    await texts.show(`Difference from ${environment}.diff`, place.root, text);
  }
}

/** Show which rows of a model's table in an environment are others than prod's. */
export async function compareRows(place: Place, texts: Texts, environment: string, model: string): Promise<void> {
  const title = `Data diff of ${model} in ${environment}`;
  const text = await answer(place, title, ["table_diff", `prod:${environment}`, model], [0], SPARK_SECONDS);
  if (text !== undefined) {
    await texts.show(`${title}.txt`, place.root, text);
  }
}

/** What a verb prints; undefined where it was cancelled. An Error where it fails, with its sentence. */
async function answer(
  { server, root }: Place, title: string, args: readonly string[], codes: readonly number[] = [0], seconds = SECONDS,
): Promise<string | undefined> {
  if (!vscode.workspace.isTrusted) {
    throw new Error("Trust the folder first: until then its code does not run and its state is not opened.");
  }
  const place = { location: vscode.ProgressLocation.Notification, title: `mergeplan: ${title}`, cancellable: true };
  return vscode.window.withProgress(place, async (_, token) => {
    const all = [...args, ...server.options, "--project", root];
    const verb = { command: server.command, args: all, cwd: root, seconds, token };
    const { code, stdout, stderr } = await runVerb(verb);
    if (token.isCancellationRequested) {
      return undefined;
    }
    if (code === null || !codes.includes(code)) {
      const errors = readLines(stdout).flatMap((line) => errorMessage(line) ?? []);
      throw new Error(errors[0] ?? (stderr.trim() || `mergeplan ${args[0]} ended with code ${code}.`));
    }
    return stdout;
  });
}
