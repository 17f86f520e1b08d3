// What edits do to prod: the last effects of each document, and the headline of the one at hand in the status bar.
import * as vscode from "vscode";
import { effectAt, headline } from "./effects";
import type { Effect, Effects } from "./effects";
import type { Servers } from "./servers";

export class Plans implements vscode.Disposable {
  private readonly effects = new Map<string, readonly Effect[]>();
  private readonly item = vscode.window.createStatusBarItem("mergeplan.plan", vscode.StatusBarAlignment.Left, 0);
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly servers: Servers) {
    this.item.name = "mergeplan: plan";
    this.subscriptions = [
      this.item,
      servers.onDidReceiveEffects((effects) => this.take(effects)),
      servers.onDidChange(() => this.forget()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
      vscode.window.onDidChangeTextEditorSelection(() => this.show()),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.effects.delete(String(uri))),
      vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("mergeplan.statusBar") && this.show()),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** The effect of the model in which the cursor of the active editor stands. */
  get current(): { uri: vscode.Uri; effect: Effect } | undefined {
    const editor = vscode.window.activeTextEditor;
    const effects = editor && this.effects.get(String(editor.document.uri));
    const effect = effects && effectAt(effects, editor.selection.active.line);
    return effect && { uri: editor.document.uri, effect };
  }

  /** The effect of a model of a document. */
  effect(uri: string, model: string): Effect | undefined {
    return this.effects.get(String(vscode.Uri.parse(uri)))?.find((effect) => effect.model === model);
  }

  private take({ uri, effects }: Effects): void {
    this.effects.set(String(vscode.Uri.parse(uri)), effects);
    this.show();
  }

  private forget(): void {
    const uris = [...this.effects.keys()].filter((uri) => !this.servers.find(vscode.Uri.parse(uri)));
    uris.forEach((uri) => this.effects.delete(uri));
    this.show();
  }

  private show(): void {
    const current = this.current;
    void vscode.commands.executeCommand("setContext", "mergeplan.hasModel", current !== undefined);
    if (!current || !vscode.workspace.getConfiguration("mergeplan").get("statusBar", true)) {
      this.item.hide();
      return;
    }
    const { text, tooltip, isWarning } = headline(current.effect);
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.backgroundColor = isWarning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.command = { command: "mergeplan.showEffect", title: "Show", arguments: [String(current.uri), current.effect.model] };
    this.item.show();
  }
}
