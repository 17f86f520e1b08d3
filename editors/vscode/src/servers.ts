// The servers: one `mergeplan lsp` for each workspace folder that has a project.
import { constants, accessSync, existsSync, statSync } from "node:fs";
import { homedir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { DocumentFormattingRequest, FileChangeType, LanguageClient, RevealOutputChannelOn } from "vscode-languageclient/node";
import type { DynamicFeature, FileEvent, LanguageClientOptions, StaticFeature } from "vscode-languageclient/node";
import { findCommand } from "./command";
import type { Effects } from "./effects";
import * as project from "./project";

/** The server of a workspace folder. */
export interface Server {
  readonly folder: vscode.WorkspaceFolder;
  readonly roots: readonly string[];
  readonly command: readonly string[];
  /** Options of every verb. */
  readonly options: readonly string[];
  readonly client: LanguageClient;
  readonly watchers: readonly vscode.Disposable[];
}

const MISSING = "mergeplan is neither in the project's virtual environment nor in PATH: pip install 'mergeplan[lsp]'";

const OWN_FEATURES = ["workspace/executeCommand", "textDocument/formatting"];

/**
 * A client without commands of its own: each server has the same ones, and the editor knows a name once. Nor does it
 * format: the editor would take it for a formatter of YAML and Python, too.
 */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if (!("registrationType" in feature && OWN_FEATURES.includes(feature.registrationType.method))) {
      super.registerFeature(feature as StaticFeature);
    }
  }
}

export class Servers implements vscode.Disposable {
  readonly output = vscode.window.createOutputChannel("mergeplan", { log: true });
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly effects = new vscode.EventEmitter<Effects>();
  /** The set of servers is another one. */
  readonly onDidChange = this.changed.event;
  readonly onDidReceiveEffects = this.effects.event;
  private servers = new Map<string, Server>();
  private turn: Promise<void> = Promise.resolve();

  get all(): readonly Server[] {
    return [...this.servers.values()];
  }

  /** The project around a file, with its server. */
  find(uri: vscode.Uri): { server: Server; root: string } | undefined {
    if (uri.scheme !== "file") {
      return undefined;
    }
    const root = project.rootOf(uri.fsPath, this.all.flatMap((server) => server.roots));
    const server = this.all.find(({ roots }) => root !== undefined && roots.includes(root));
    return server && root !== undefined ? { server, root } : undefined;
  }

  /** Start and stop servers as folders and projects are; with `anew`, all of them. One call at a time. */
  refresh(anew = false): Promise<void> {
    this.turn = this.turn.then(() => this.settle(anew)).catch((error: unknown) => this.output.error(String(error)));
    return this.turn;
  }

  async dispose(): Promise<void> {
    await this.turn;
    await Promise.all(this.all.map(stop));
    this.output.dispose();
  }

  private async settle(anew: boolean): Promise<void> {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
    const paths = folders.map(({ uri }) => uri.fsPath);
    const configs = await vscode.workspace.findFiles(project.CONFIG_GLOB, project.EXCLUDED_GLOB, 2_000);
    const roots = project.findRoots(configs.filter((uri) => uri.scheme === "file").map((uri) => uri.fsPath), paths, existsSync);
    const shares = project.shareRoots(roots, paths);
    for (const [folder, server] of [...this.servers]) {
      if (anew || String(shares.get(folder) ?? "") !== String(server.roots)) {
        this.servers.delete(folder);
        await stop(server);
      }
    }
    for (const folder of folders) {
      const own = shares.get(folder.uri.fsPath);
      if (own && !this.servers.has(folder.uri.fsPath)) {
        await this.start(folder, own);
      }
    }
    await vscode.commands.executeCommand("setContext", "mergeplan.hasProject", this.servers.size > 0);
    this.changed.fire();
  }

  private async start(folder: vscode.WorkspaceFolder, roots: readonly string[]): Promise<void> {
    const settings = vscode.workspace.getConfiguration("mergeplan", folder.uri);
    const command = findCommand({
      setting: settings.get<string[]>("command", []),
      folder: folder.uri.fsPath,
      roots,
      trusted: vscode.workspace.isTrusted,
      searchPath: process.env["PATH"] ?? "",
      isProgram,
    });
    if (!command) {
      this.output.warn(`${folder.name}: ${MISSING}`);
      void this.offerSetting(`${MISSING}.`);
      return;
    }
    const gateway = settings.get<string>("gateway", "");
    const watchers = roots.map((root) =>
      vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(root, project.WATCHED_GLOB)),
    );
    const options = gateway ? ["--gateway", gateway] : [];
    const client = this.makeClient(folder, roots, [...command, "lsp", ...options], watchers);
    client.onNotification("mergeplan/effects", (effects: Effects) => this.effects.fire(effects));
    this.output.info(`${folder.name}: ${command.join(" ")} lsp, for ${roots.join(", ")}`);
    try {
      await client.start();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.output.error(`${folder.name}: ${why}`);
      watchers.forEach((watcher) => watcher.dispose());
      void this.offerSetting(`mergeplan lsp did not start in ${folder.name}: its output says why.`);
      return;
    }
    const formatting = addFormatting(client, roots);
    this.servers.set(folder.uri.fsPath, { folder, roots, command, options, client, watchers: [...watchers, formatting] });
  }

  private makeClient(
    folder: vscode.WorkspaceFolder,
    roots: readonly string[],
    [program = "", ...args]: readonly string[],
    watchers: vscode.FileSystemWatcher[],
  ): Client {
    const trusted = vscode.workspace.isTrusted;
    const cwd = trusted ? folder.uri.fsPath : homedir();
    const options: LanguageClientOptions = {
      documentSelector: roots.flatMap((root) =>
        project.claimedGlobs(root, existsSync).map((pattern) => (
          { scheme: "file", pattern: { baseUri: vscode.Uri.file(root).toString(), pattern } }
        )),
      ),
      workspaceFolder: folder,
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: { trusted },
      diagnosticCollectionName: "mergeplan",
      connectionOptions: { maxRestartCount: 3 },
      synchronize: { fileEvents: watchers },
      middleware: {
        workspace: { didChangeWatchedFile: async (event, next) => (isNews(event, roots) ? next(event) : undefined) },
      },
    };
    const executable = { command: program, args, options: { cwd } };
    return new Client("mergeplan", `mergeplan (${folder.name})`, executable, options);
  }

  private async offerSetting(message: string): Promise<void> {
    const choice = await vscode.window.showWarningMessage(message, "Show Output", "Open Setting");
    if (choice === "Show Output") {
      this.output.show();
    } else if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "mergeplan.command");
    }
  }
}

/** The layout of SQL files, as the server has it. */
function addFormatting(client: LanguageClient, roots: readonly string[]): vscode.Disposable {
  const selector = roots.map((root) => ({ scheme: "file", pattern: new vscode.RelativePattern(root, "**/*.sql") }));
  return vscode.languages.registerDocumentFormattingEditProvider(selector, {
    async provideDocumentFormattingEdits(document, options, token) {
      const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(document);
      const params = { textDocument, options: { tabSize: options.tabSize, insertSpaces: options.insertSpaces } };
      const edits = await client.sendRequest(DocumentFormattingRequest.type, params, token);
      return client.protocol2CodeConverter.asTextEdits(edits, token);
    },
  });
}

/** True for a file's change of which a server does not hear by the document: an open file that is saved is no news. */
function isNews(event: FileEvent, roots: readonly string[]): boolean {
  const uri = vscode.Uri.parse(event.uri);
  const root = project.rootOf(uri.fsPath, roots);
  const isOpen = vscode.workspace.textDocuments.some((document) => String(document.uri) === String(uri));
  const isEdit = event.type === FileChangeType.Changed && isOpen;
  return root !== undefined && !isEdit && project.isWatched(path.relative(root, uri.fsPath));
}

async function stop({ client, watchers }: Server): Promise<void> {
  watchers.forEach((watcher) => watcher.dispose());
  await client.dispose().catch(() => undefined); // it may have ended by itself
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
