// Texts of the program as documents that cannot be edited and ask nobody to save them.
import * as vscode from "vscode";

const SCHEME = "mergeplan-text";

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly texts = new Map<string, string>();
  private readonly subscriptions = [
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => this.texts.delete(String(uri))),
    this.changed,
  ];

  dispose(): void {
    this.subscriptions.forEach((subscription) => subscription.dispose());
  }

  /** Show a text beside the editor; one with the same title and place is replaced. */
  async show(title: string, place: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title}`, query: place });
    this.texts.set(String(uri), text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(String(uri)) ?? "";
  }
}
