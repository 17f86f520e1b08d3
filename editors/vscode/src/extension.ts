// The extension's start: servers, status bar, commands, tests. What can be decided without an editor stands in other files.
import * as vscode from "vscode";
import { Environments, PROD } from "./environments";
import { compare, compareRows, showPage } from "./pages";
import type { Place } from "./pages";
import { Panels } from "./panels";
import { Plans } from "./plans";
import { CONFIG_GLOB } from "./project";
import { RenderedQueries } from "./rendered";
import { Servers } from "./servers";
import { Texts } from "./texts";
import { UnitTests } from "./unitTests";
import { addSchemas } from "./yaml";

const SETTINGS = ["mergeplan.command", "mergeplan.gateway"];

let running: Servers | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const servers = new Servers();
  running = servers;
  const plans = new Plans(servers);
  const rendered = new RenderedQueries(servers);
  const tests = new UnitTests(servers);
  const texts = new Texts();
  const panels = new Panels(servers);
  const environments = new Environments(servers, context.workspaceState);
  const configs = vscode.workspace.createFileSystemWatcher(CONFIG_GLOB, false, true, false);
  context.subscriptions.push(
    plans,
    rendered,
    tests,
    texts,
    panels,
    environments,
    configs,
    configs.onDidCreate(() => void servers.refresh()),
    configs.onDidDelete(() => void servers.refresh()),
    vscode.workspace.onDidChangeWorkspaceFolders(() => void servers.refresh()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void servers.refresh(true)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (SETTINGS.some((name) => event.affectsConfiguration(name))) {
        void servers.refresh(true);
      }
    }),
    ...addModelCommands(servers, plans, rendered, tests, texts, panels, environments),
    ...addProjectCommands(servers, texts, panels, environments),
  );
  await servers.refresh();
  await addSchemas(context, servers).catch((error: unknown) => servers.output.warn(`No schema of config.yaml: ${String(error)}`));
}

export async function deactivate(): Promise<void> {
  await running?.dispose();
}

/** Register a command, whose error is shown as a sentence. */
function add(name: string, run: (...args: string[]) => unknown): vscode.Disposable {
  return vscode.commands.registerCommand(name, async (...args: string[]) => {
    try {
      await run(...args);
    } catch (error) {
      void vscode.window.showErrorMessage(`mergeplan: ${error instanceof Error ? error.message : String(error)}`);
    }
  });
}

function addModelCommands(
  servers: Servers, plans: Plans, rendered: RenderedQueries, tests: UnitTests, texts: Texts, panels: Panels,
  environments: Environments,
): vscode.Disposable[] {
  return [
    add("mergeplan.render", (uri = "", model = "") => rendered.show(uri, model)),
    add("mergeplan.renderModel", () => {
      const { uri, effect } = currentModel(plans);
      return rendered.show(String(uri), effect.model);
    }),
    add("mergeplan.runTest", (uri = "", name = "") => tests.runOne(vscode.Uri.parse(uri), name)),
    add("mergeplan.showEffect", async (uri = "", model = "") => {
      const effect = plans.effect(uri, model);
      const place = servers.find(vscode.Uri.parse(uri));
      const choice = effect && (await vscode.window.showInformationMessage(`${model}: ${effect.text}`, "Render", "Lineage", "Data Diff"));
      if (choice === "Render") {
        await rendered.show(uri, model);
      } else if (choice === "Lineage" && place) {
        await panels.showLineage(place, model);
      } else if (choice && place) {
        await showDataDiff(place, texts, environments, model);
      }
    }),
    add("mergeplan.showLineage", async () => {
      const { uri, effect } = currentModel(plans);
      const place = servers.find(uri);
      if (place) {
        await panels.showLineage(place, effect.model);
      }
    }),
  ];
}

function addProjectCommands(
  servers: Servers, texts: Texts, panels: Panels, environments: Environments,
): vscode.Disposable[] {
  return [
    add("mergeplan.showPlan", async () => {
      const place = await pickPlace(servers);
      if (place) {
        await panels.showPlan(place, environments.of(place.root));
      }
    }),
    add("mergeplan.pickEnvironment", async () => {
      const place = await pickPlace(servers);
      if (place) {
        await environments.pick(place);
      }
    }),
    add("mergeplan.openPage", (root = "", path = "") => panels.open(root, path)),
    add("mergeplan.showGraph", async () => {
      const place = await pickPlace(servers);
      if (place) {
        await showPage(place, "Models", ["dag"]);
      }
    }),
    add("mergeplan.compare", async () => {
      const place = await pickPlace(servers);
      if (place) {
        const environment = await environments.pick(place);
        if (environment) {
          await compare(place, texts, environment);
        }
      }
    }),
    add("mergeplan.restart", () => servers.refresh(true)),
    add("mergeplan.showOutput", () => servers.output.show()),
  ];
}

/** Compare a model's rows in the environment of the status bar with prod's; with prod there, another one is asked for. */
async function showDataDiff(place: Place, texts: Texts, environments: Environments, model: string): Promise<void> {
  const known = environments.of(place.root);
  const environment = known === PROD ? await environments.pick(place) : known;
  if (environment === PROD) {
    throw new Error("Pick an environment in which the model is built: its rows are compared with prod's.");
  }
  if (environment) {
    await compareRows(place, texts, environment, model);
  }
}

function currentModel(plans: Plans): NonNullable<Plans["current"]> {
  const current = plans.current;
  if (!current) {
    throw new Error("The file at hand holds no model.");
  }
  return current;
}

/** The project of the file at hand; else the one that there is, or that the user picks. */
async function pickPlace(servers: Servers): Promise<Place | undefined> {
  const uri = vscode.window.activeTextEditor?.document.uri;
  const here = uri && servers.find(uri);
  if (here) {
    return here;
  }
  const places = servers.all.flatMap((server) => server.roots.map((root) => ({ label: root, server, root })));
  return places.length < 2 ? places[0] : vscode.window.showQuickPick(places, { placeHolder: "Project" });
}
