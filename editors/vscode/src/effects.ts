// What the server says of a document's edits (`mergeplan/effects`), as one line for the status bar.

export interface Effect {
  readonly model: string;
  /** Of the model's block, from 0. */
  readonly line: number;
  /** The category; empty where there is no plan. */
  readonly title: string;
  readonly text: string;
}

export interface Effects {
  readonly uri: string;
  readonly effects: readonly Effect[];
}

export interface Headline {
  readonly text: string;
  readonly tooltip: string;
  readonly isWarning: boolean;
}

const LONGEST = 80;

/** The effect of the model in which a line stands, from 0: the last whose block begins at or before it. */
export function effectAt(effects: readonly Effect[], line: number): Effect | undefined {
  const before = effects.filter((effect) => effect.line <= line);
  return before.sort((one, other) => other.line - one.line)[0] ?? effects[0];
}

/** The headline of an effect: what the plan says, cut to a line that a status bar holds. */
export function headline(effect: Effect): Headline {
  const icon = effect.title ? "$(git-compare)" : "$(circle-slash)";
  const text = effect.text.replaceAll("$(", "$\u200b(");
  const short = text.length > LONGEST ? `${text.slice(0, LONGEST - 1).trimEnd()}…` : text;
  const isWarning = /^(Breaking|Removed|Undecided)/.test(effect.title) || effect.text.includes("· blocked: ");
  return { text: `${icon} ${short}`, tooltip: `${effect.model}\n${effect.text}`, isWarning };
}
