/** What one action did in one attempt: its outcome, why, what it changed, and what a called URL answered. */

import type { Result } from "../ground/answer.ts";
import { isObject, type Json } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { pagePath, readPlace } from "../ground/place.ts";
import { useRoute } from "../ground/route.ts";
import { Code } from "../part/code.ts";
import { Icon } from "../part/icon.ts";
import { JsonView } from "../part/json-view.ts";
import { SafeText } from "../part/safe-text.ts";
import { Sentence } from "../part/sentence.ts";
import { StateMark } from "../part/state-mark.ts";
import { sayActionType } from "../relay/relay-words.ts";

const ICONS = { done: "check", skipped: "skip", failed: "cross" } as const;

export function EventResult({ result }: { result: Result }): View {
  const record = useRecordLink(result.after);
  const { type, outcome, code, docs, message, before, after, answer } = result;
  return html`<li class="result result-${outcome}">
    <span class="result-icon"><${Icon} name=${ICONS[outcome]} size=${13} /></span>
    <div class="result-body">
      <div class="result-head"><b>${sayActionType(type)}</b><code class="quiet">${type}</code>
        <${StateMark} state=${outcome} />${code !== undefined && html`<${Code} code=${code} docs=${docs} />`}${record !== null && html`<a href=${record}>Its record</a>`}</div>
      ${message !== undefined && html`<p><${Sentence} text=${message} /></p>`}
      ${answer !== undefined && html`<${AnswerView} answer=${answer} />`}
      ${(isSomething(before) || isSomething(after)) && html`<${Change} before=${before ?? null} after=${after ?? null} />`}
    </div>
  </li>`;
}

/** The page of the record that an action wrote; null: it wrote none. */
function useRecordLink(after: Json | undefined): string | null {
  const place = readPlace(useRoute().path)?.place;
  if (place === undefined || after === undefined || !isObject(after)) return null;
  const { collection, record } = after;
  return typeof collection === "string" && typeof record === "string"
    ? pagePath(place, "collections", collection, record)
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

function AnswerView({ answer }: { answer: { status: number; body: string } }): View {
  return html`<div class="answer"><span>The URL answered <b>${answer.status}</b>${answer.body === "" && " with no body"}</span>
    ${answer.body !== "" && html`<pre><${SafeText} text=${answer.body} /></pre>`}</div>`;
}
