// A page of `mergeplan lineage` or `mergeplan dag` in a webview: it may run and load nothing.

const POLICY = "default-src 'none'; style-src 'unsafe-inline'";
const COLOURS = `:root { --ink: var(--vscode-editor-foreground) !important; --dim: var(--vscode-descriptionForeground) !important;
  --page: var(--vscode-editor-background) !important; --box: var(--vscode-editorWidget-background) !important }`;

/** The page with a policy that forbids scripts, frames, pictures and connections, and with the editor's colours. */
export function securePage(html: string): string {
  const head = html.indexOf("<head>");
  if (head < 0) {
    throw new Error("The page has no head.");
  }
  const at = head + "<head>".length;
  const policy = `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`;
  return `${html.slice(0, at)}${policy}<style>${COLOURS}</style>${html.slice(at)}`;
}
