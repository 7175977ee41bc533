/** One attempt of an event with its actions in the order in which they ran. */

import { formatSpan } from "../../src/base/shared/time-span.ts";
import type { Run } from "../base/answer.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { EventResult, type Stretch } from "./event-result.ts";

export function EventRun({
  run,
  isOpen,
  planned,
}: {
  run: Run;
  isOpen: boolean;
  planned: number | null;
}): View {
  const outcome = run.outcome ?? "running";
  const stretches = stretchesOf(run);
  const took =
    run.finishedAt === null ? null : formatSpan(Date.parse(run.finishedAt) - Date.parse(run.startedAt));
  const missing =
    planned === null || outcome !== "failed"
      ? 0
      : planned - run.results.filter(({ type }) => type !== "person").length;
  return html`<li class="run run-${outcome}"><details open=${isOpen}>
    <summary><b>Attempt ${run.attempt}</b><${StateMark} state=${outcome} /><${Steps} run=${run} /><span class="quiet">
      <${Ago} at=${run.startedAt} />${took !== null && ` · took ${took}`}</span></summary>
    ${
      run.results.length === 0
        ? html`<p class="quiet run-none">No action ran${outcome === "interrupted" && ": the service stopped during the attempt"}.</p>`
        : html`<ol class="results">${run.results.map((result, at) => html`<${EventResult} key=${at} result=${result} stretch=${stretches[at] ?? null} />`)}</ol>`
    }
    ${
      missing > 0 &&
      run.results.length > 0 &&
      html`<p class="quiet run-none">
      ${formatCount(missing, "action")} after it did not run.</p>`
    }
  </details></li>`;
}

/** Smallest visible width, in thousandths. */
const LEAST_WIDTH = 4;

/** Returns the position of each action within the attempt. An action without a start time follows the previous one. null: it was not measured. */
function stretchesOf({ startedAt, finishedAt, results }: Run): (Stretch | null)[] {
  const start = Date.parse(startedAt);
  let end = 0;
  const spans = results.map(({ beganAt, tookMs }) => {
    if (tookMs === null) return null;
    const from = beganAt === null ? end : Math.max(end, Date.parse(beganAt) - start);
    end = from + tookMs;
    return { from, tookMs };
  });
  const totalMs = Math.max(1, end, finishedAt === null ? 0 : Date.parse(finishedAt) - start);
  return spans.map((span) => {
    if (span === null) return null;
    const width = Math.max(LEAST_WIDTH, (span.tookMs / totalMs) * 1_000);
    return { from: Math.min(1_000 - width, (span.from / totalMs) * 1_000), width };
  });
}

const STEP = 14;
const SHOWN_STEPS = 24;

/** Shows one bar for each action, in the order in which they ran. */
function Steps({ run }: { run: Run }): View {
  const shown = run.results.slice(0, SHOWN_STEPS);
  if (shown.length < 2) return null;
  return html`<svg class="run-steps" width=${shown.length * STEP} height="8" aria-hidden="true" focusable="false">${shown.map(
    ({ outcome }, at) =>
      html`<rect key=${at} class="step-${outcome}" x=${at * STEP} width=${STEP - 2} height="8" rx="1" />`,
  )}</svg>`;
}
