// Panels with pages of `mergeplan ui`: the plan of an environment, lineage, models. They show the saved files.
import * as vscode from "vscode";
import { OPEN_PAGE, panelPage, styleAddress } from "./page";
import { PageServer } from "./pageServer";
import type { Place } from "./pages";
import type { Servers } from "./servers";

const PAUSE = 500; // milliseconds between two questions whether a plan is made
const WAITING = new Set(["waiting", "running"]);

interface Job {
  readonly id: string;
  readonly status: string;
}

export class Panels implements vscode.Disposable {
  private readonly pageServers = new Map<string, PageServer>();
  private readonly panels = new Map<string, vscode.WebviewPanel>();
  private readonly subscription: vscode.Disposable;

  constructor(servers: Servers) {
    this.subscription = servers.onDidChange(() => this.stop());
  }

  dispose(): void {
    this.subscription.dispose();
    this.stop();
  }

  /** Plan an environment against the saved files, and show the plan; unit tests have a view of their own. */
  async showPlan(place: Place, environment: string): Promise<void> {
    const title = `Plan of ${environment}`;
    const progress = { location: vscode.ProgressLocation.Notification, title: `mergeplan: ${title}`, cancellable: true };
    const path = await vscode.window.withProgress(progress, async (_, token) => {
      const server = this.pagesOf(place);
      let job = JSON.parse(await server.post("/api/v1/plans", { environment, skip_tests: true })) as Job;
      while (WAITING.has(job.status) && !token.isCancellationRequested) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE));
        job = JSON.parse(await server.get(`/api/v1/plans/${encodeURIComponent(job.id)}`)) as Job;
      }
      if (token.isCancellationRequested) {
        await server.post(`/api/v1/plans/${encodeURIComponent(job.id)}/cancel`, {});
        return undefined;
      }
      return `/plans/${encodeURIComponent(job.id)}`;
    });
    if (path !== undefined) {
      await this.show(place.root, path, title);
    }
  }

  /** Show the lineage around a model. */
  async showLineage(place: Place, model: string): Promise<void> {
    this.pagesOf(place);
    await this.show(place.root, `/lineage?${new URLSearchParams({ focus: model, up: "2", down: "2" })}`, `Lineage of ${model}`);
  }

  /** Show a page to which a link of another one leads. */
  async open(root: string, path: string): Promise<void> {
    if (!this.pageServers.has(root) || !path.startsWith("/") || path.startsWith("/api/")) {
      throw new Error("The page is none of an open panel.");
    }
    await this.show(root, path);
  }

  private async show(root: string, path: string, title?: string): Promise<void> {
    const server = this.pageServers.get(root);
    if (!server) {
      return;
    }
    const html = await server.get(path);
    const styles = styleAddress(html);
    const panel = this.panelOf(root);
    panel.title = title ?? (/<title>([^<]*)<\/title>/.exec(html)?.[1] ?? "mergeplan").replace(/ · mergeplan$/, "");
    panel.webview.html = panelPage(html, styles === undefined ? "" : await server.get(styles), root);
    panel.reveal(undefined, true);
  }

  private panelOf(root: string): vscode.WebviewPanel {
    const known = this.panels.get(root);
    if (known) {
      return known;
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel("mergeplan.pages", "mergeplan", column, {
      enableScripts: false,
      enableForms: false,
      enableCommandUris: [OPEN_PAGE],
      localResourceRoots: [],
    });
    panel.onDidDispose(() => this.panels.delete(root));
    this.panels.set(root, panel);
    return panel;
  }

  private pagesOf({ server, root }: Place): PageServer {
    if (!vscode.workspace.isTrusted) {
      throw new Error("Trust the folder first: until then its code does not run and its state is not opened.");
    }
    const known = this.pageServers.get(root);
    if (known && !known.ended) {
      return known;
    }
    const started = new PageServer({ command: server.command, options: server.options, root });
    this.pageServers.set(root, started);
    return started;
  }

  private stop(): void {
    this.pageServers.forEach((server) => server.dispose());
    this.pageServers.clear();
  }
}
