/** Result of one action in one attempt: its outcome, reason, time and duration, its changes, and the exchange with a receiver. */

import { formatSpan } from "../../src/base/shared/time-span.ts";
import type { Result } from "../base/answer.ts";
import { formatNumber } from "../base/count-words.ts";
import { isObject, type Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { pagePath, readPlace } from "../base/place.ts";
import { useRoute } from "../base/route.ts";
import { formatFullTime } from "../base/time-words.ts";
import { Code } from "../component/code.ts";
import { Icon } from "../component/icon.ts";
import { JsonView } from "../component/json-view.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { formatActionType } from "../relay/relay-words.ts";
import { EventExchange } from "./event-exchange.ts";
import { foundOwnWork } from "./reason-words.ts";

const ICONS = { done: "check", skipped: "skip", failed: "cross" } as const;

/** Position and length of an action within its attempt, in thousandths. */
export interface Stretch {
  from: number;
  width: number;
}

export function EventResult({ result, stretch }: { result: Result; stretch: Stretch | null }): View {
  const record = useRecordLink(result.after);
  const { type, outcome, code, docs, message, before, after } = result;
  return html`<li class="result result-${outcome}">
    <span class="result-icon"><${Icon} name=${ICONS[outcome]} size=${13} /></span>
    <div class="result-body">
      <div class="result-head"><b>${formatActionType(type)}</b><code class="quiet">${type}</code>
        <${StateMark} state=${outcome} word=${foundOwnWork(result) ? "Already done" : undefined} /><${Took} result=${result} />${code !== undefined && html`<${Code} code=${code} docs=${docs} />`}${record !== null && html`<a href=${record}>Open record</a>`}</div>
      ${
        stretch !== null &&
        html`<svg class="result-time" viewBox="0 0 1000 4" preserveAspectRatio="none" aria-hidden="true" focusable="false"><rect class="step-${outcome}" x=${stretch.from} width=${stretch.width} height="4" /></svg>`
      }
      ${message !== undefined && html`<p><${Sentence} text=${message} /></p>`}
      <${EventExchange} result=${result} />
      ${(isSomething(before) || isSomething(after)) && html`<${Change} before=${before ?? null} after=${after ?? null} />`}
    </div>
  </li>`;
}

function Took({ result: { tookMs, beganAt } }: { result: Result }): View {
  if (tookMs === null) return null;
  const exact = `${formatNumber(tookMs)} ms${beganAt === null ? "" : `, called at ${formatFullTime(beganAt)}`}`;
  return html`<span class="quiet result-took" title=${exact}>${tookMs === 0 ? "under 1 ms" : formatSpan(tookMs)}</span>`;
}

/** Returns the page of the record that an action wrote, or null. */
function useRecordLink(after: Json | undefined): string | null {
  const place = readPlace(useRoute().path)?.place;
  if (place === undefined || after === undefined || !isObject(after)) return null;
  const { collection, record } = after;
  return typeof collection === "string" && typeof record === "string"
    ? pagePath(place, "records", collection, record)
    : null;
}

function isSomething(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

function Change({ before, after }: { before: Json; after: Json }): View {
  return html`<details class="change"><summary>Before and after</summary><div class="change-sides">
    <div><h4>Before</h4>
      ${before === null ? html`<p class="quiet">nothing</p>` : html`<${JsonView} value=${before} label="Before" />`}
      </div>
    <div><h4>After</h4>
      ${after === null ? html`<p class="quiet">nothing</p>` : html`<${JsonView} value=${after} label="After" />`}
      </div>
  </div></details>`;
}
