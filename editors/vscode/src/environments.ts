// The environment of each project that the plan panel and the comparison are about: picked once, and shown in the status bar.
import * as vscode from "vscode";
import { listEnvironments } from "./pages";
import type { Place } from "./pages";
import type { Servers } from "./servers";

export const PROD = "prod";
const NEW = "$(add) Another environment...";

export class Environments implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("mergeplan.environment", vscode.StatusBarAlignment.Left, -1);
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly servers: Servers, private readonly memory: vscode.Memento) {
    this.item.name = "mergeplan: environment";
    this.item.command = "mergeplan.pickEnvironment";
    this.item.tooltip = "The environment that mergeplan's plan panel and comparison are about";
    this.subscriptions = [
      this.item,
      servers.onDidChange(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** The environment of a project. */
  of(root: string): string {
    return this.memory.get(`environment:${root}`, PROD);
  }

  /** Let the user pick the environment of a project; undefined where none was picked. */
  async pick(place: Place): Promise<string | undefined> {
    const rows = await listEnvironments(place);
    if (rows === undefined) {
      return undefined;
    }
    const known = rows.some(({ label }) => label === PROD) ? rows : [{ label: PROD, description: "not there yet" }, ...rows];
    const choice = await vscode.window.showQuickPick([...known, { label: NEW, description: "" }], {
      placeHolder: "The environment to plan and to compare with",
    });
    const name = choice?.label === NEW ? await vscode.window.showInputBox({ prompt: "The name of the environment" }) : choice?.label;
    if (name) {
      await this.memory.update(`environment:${place.root}`, name);
      this.show();
    }
    return name;
  }

  private show(): void {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const place = uri && this.servers.find(uri);
    if (!place) {
      this.item.hide();
      return;
    }
    this.item.text = `$(server-environment) ${this.of(place.root).replaceAll("$(", "$\u200b(")}`;
    this.item.show();
  }
}
