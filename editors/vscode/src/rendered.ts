// The query of a model as Spark runs it, beside its source: a document that cannot be edited and follows the source.
import * as vscode from "vscode";
import type { Servers } from "./servers";

const SCHEME = "mergeplan-rendered";

interface Rendered {
  readonly model: string;
  readonly sql: string;
}

export class RenderedQueries implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];

  constructor(private readonly servers: Servers) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      servers.onDidReceiveEffects(({ uri }) => this.renew(String(vscode.Uri.parse(uri)))),
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** Show a model's query beside the editor. */
  async show(source: string, model: string): Promise<void> {
    const query = JSON.stringify([String(vscode.Uri.parse(source)), model]);
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${model} (rendered).sql`, query });
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const [source, model] = JSON.parse(uri.query) as [string, string];
    const found = this.servers.find(vscode.Uri.parse(source));
    if (!found) {
      return `-- ${model}: no server is running for its project.\n`;
    }
    try {
      const rendered = await found.server.client.sendRequest<Rendered | null>("mergeplan/render", { uri: source, model });
      return rendered ? `${rendered.sql}\n` : `-- ${model}: its file is not open, or its project has errors.\n`;
    } catch (error) {
      return `-- ${model}: ${(error instanceof Error ? error.message : String(error)).replaceAll("\n", "\n-- ")}\n`;
    }
  }

  private renew(source: string): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (uri.scheme === SCHEME && (JSON.parse(uri.query) as string[])[0] === source) {
        this.changed.fire(uri);
      }
    }
  }
}
