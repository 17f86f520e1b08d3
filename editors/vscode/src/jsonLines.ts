// The JSON lines of the commands (docs/reference/json.md), as far as the editor reads them.

export interface TestResult {
  readonly name: string;
  readonly path: string;
  readonly ok: boolean;
  readonly message: string;
}

export interface EnvironmentRow {
  readonly name: string;
  readonly text: string;
}

/** The objects of a text of JSON lines; other lines are left out. */
export function readLines(text: string): Record<string, unknown>[] {
  return text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return isObject(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}

/** The result of a unit test; undefined for any other line. */
export function testResult(line: Record<string, unknown>): TestResult | undefined {
  const { event, name, path, ok, message } = line;
  if (event !== "test" || typeof name !== "string" || typeof path !== "string") {
    return undefined;
  }
  return { name, path, ok: ok === true, message: typeof message === "string" ? message : "" };
}

/** The message of an error, with what to do; undefined for any other line. */
export function errorMessage(line: Record<string, unknown>): string | undefined {
  if (line["event"] !== "error" || typeof line["message"] !== "string") {
    return undefined;
  }
  const hint = line["hint"];
  return typeof hint === "string" && hint ? `${line["message"]} ${hint}` : line["message"];
}

/** The environments that `mergeplan environments` lists. */
export function environmentRows(text: string): EnvironmentRow[] {
  const result = readLines(text).find((line) => line["event"] === "result");
  const rows = Array.isArray(result?.["environments"]) ? result["environments"] : [];
  return rows.filter(isObject).flatMap((row) => {
    const { name, ...others } = row;
    const parts = Object.entries(others).filter(([, value]) => value !== null && typeof value !== "object");
    const text = parts.map(([key, value]) => `${key.replaceAll("_", " ")}: ${String(value)}`).join(" · ");
    return typeof name === "string" ? [{ name, text }] : [];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
