// A page of `mergeplan ui`, `lineage` or `dag` in a webview: it may run and load nothing, and its links are commands.

export const OPEN_PAGE = "mergeplan.openPage";
const POLICY = "default-src 'none'; style-src 'unsafe-inline'";
const COLOURS = `:root { --ink: var(--vscode-editor-foreground) !important; --dim: var(--vscode-descriptionForeground) !important;
  --page: var(--vscode-editor-background) !important; --box: var(--vscode-editorWidget-background) !important }`;
// What leads nowhere in a panel: forms, the bar above the page, what scripts would fill.
const HIDDEN = "form, .top, .skip, button, select, td[data-label=Category] { display: none !important }";

/** The page with a policy that forbids scripts, frames, pictures and connections, and with the editor's colours. */
export function securePage(html: string, styles = ""): string {
  const head = html.indexOf("<head>");
  if (head < 0) {
    throw new Error("The page has no head.");
  }
  const at = head + "<head>".length;
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  return `${html.slice(0, at)}${policy}${styles && `<style>${closed(styles)}</style>`}<style>${COLOURS}</style>${html.slice(at)}`;
}

/** The address of a page's style sheet; undefined where it has none of its own server. */
export function styleAddress(html: string): string | undefined {
  return /<link rel="stylesheet" href="(\/[^"]*)"/.exec(html)?.[1];
}

/** A page of `mergeplan ui` for a panel: its links to other pages are one command of ours, and forms are left out. */
export function panelPage(html: string, styles: string, root: string): string {
  const bare = html.replace(/<script\b[\s\S]*?<\/script>/gi, "").replace(/<(link|meta http-equiv)\b[^>]*>/gi, "");
  const linked = bare.replace(/(<a\b[^>]*?\shref=")(\/[^"]*)"/gi, (_, before: string, path: string) => {
    const target = encodeURIComponent(JSON.stringify([root, path.replaceAll("&amp;", "&")]));
    return `${before}command:${OPEN_PAGE}?${target}"`;
  });
  return securePage(linked, `${styles}\n${HIDDEN}`);
}

function closed(styles: string): string {
  return styles.replaceAll("</", "<\\/");
}
