/** List of a definition's problems. Each one links to its line in the text. */

import type { Problem } from "../../src/base/refusal.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";
import { Sentence } from "./sentence.ts";

export interface PlacedProblem extends Problem {
  /** Line in the text, from 1; null if it is not known. */
  line: number | null;
}

export function ProblemList({
  problems,
  onGo,
}: {
  problems: readonly PlacedProblem[];
  onGo: (problem: PlacedProblem) => void;
}): View {
  if (problems.length === 0) return null;
  return html`<div class="problems" role="group" aria-label="Problems">
    <h3><${Icon} name="attention" />${formatCount(problems.length, "problem")} to fix</h3>
    <ul>
      ${problems.map(
        (problem, at) => html`<li key=${at}>
          <button type="button" class="problem-place" onClick=${() => onGo(problem)} disabled=${problem.line === null}>
            ${problem.line !== null && html`<span class="problem-line">line ${problem.line}</span>`}
            <code>${problem.field === "" ? "definition" : problem.field}</code>
          </button>
          <span><${Sentence} text=${problem.message} /></span>
        </li>`,
      )}
    </ul>
  </div>`;
}
