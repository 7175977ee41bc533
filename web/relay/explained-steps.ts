/**
 * Explanation of a request in steps: what was found, the signed payload, the verdict with the first difference, the
 * mapped values, and the actions that would run.
 */
import type { Simulation } from "../../src/insight/simulate/step.ts";
import { isObject, type Json, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Icon } from "../component/icon.ts";
import { JsonView } from "../component/json-view.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { formatActionStep, formatActionType } from "./relay-words.ts";

type Step = Simulation["steps"][number];

const TITLES: Readonly<Record<Step["step"], string>> = {
  parts: "Parts of the signature",
  signed_text: "Signed payload",
  signature: "Result",
  handshake: "Handshake",
  map: "Map",
  when: "When",
  where: "Where",
  event_id: "Deduplication",
  waiting: "Queued",
  person: "Person",
  action: "Action",
};
const WOULD: Readonly<Record<Simulation["would"], string>> = {
  run: "It would run",
  fail: "It would fail",
  wait: "It would wait",
  ignore: "It would be ignored",
  duplicate: "It would be a duplicate",
  refuse: "It would be rejected",
};
const ICONS = { ok: "check", stops: "cross", unknown: "help" } as const;

export function ExplainedSteps({ place, explanation }: { place: Place; explanation: Simulation }): View {
  const { would, message, steps, warnings, example } = explanation;
  return html`<section aria-label="Steps" class="explained"><h2 class="off-screen">Steps</h2>
    <${Notice} kind=${would === "run" ? "good" : would === "wait" || would === "duplicate" || would === "ignore" ? "warn" : "bad"}>
      <b>${WOULD[would]}.</b> <${Sentence} text=${message} /><//>
    ${warnings.map((warning) => html`<${Notice} key=${warning} kind="warn"><${SafeText} text=${warning} limit=${500} /><//>`)}
    ${
      example !== null &&
      html`<details class="explained-example"><summary>Generated example</summary>
        <pre><${SafeText} text=${example.body} limit=${8_000} /></pre><${CopyButton} text=${example.body} label="Copy example" /></details>`
    }
    <ol class="explained-steps">${steps.map(
      (
        step,
        at,
      ) => html`<li key=${at} class="explained-step step-${step.outcome} ${step.reached ? "" : "unreached"}">
      <span class="result-icon"><${Icon} name=${ICONS[step.outcome]} size=${13} /></span>
      <div><h3>${titleOf(step)}${!step.reached && html` <span class="quiet">not reached</span>`}</h3>
        <p><${Sentence} text=${messageOf(step)} /></p><${Detail} place=${place} step=${step} /></div></li>`,
    )}</ol></section>`;
}

function titleOf({ step, detail }: Step): string {
  const shown = detail as unknown as Json;
  if (step === "action" && isObject(shown)) return formatActionType(String(shown.type));
  return TITLES[step];
}

function messageOf({ step, message, detail }: Step): string {
  const shown = detail as unknown as Json;
  return step === "action" && isObject(shown) ? formatActionStep(String(shown.type), message) : message;
}

function Detail({ place, step: { step, detail } }: { place: Place; step: Step }): View {
  const shown = detail as unknown as Json;
  if (Array.isArray(shown) && (step === "parts" || step === "map"))
    return shown.length === 0 ? null : html`<${Rows} rows=${shown} />`;
  if (!isObject(shown)) return null;
  if (step === "signed_text")
    return html`<pre class="explained-text"><${SafeText} text=${String(shown.text)} limit=${4_096} /></pre>
      ${shown.cut === true && html`<p class="quiet">The first part of ${String(shown.bytes)} bytes.</p>`}`;
  if (step === "signature") return html`<${Changes} changes=${shown.changes} />`;
  if (step === "person") return html`<${PersonLine} place=${place} person=${shown} />`;
  if (step === "event_id" && typeof shown.first === "string")
    return html`<p><a href=${pagePath(place, "events", shown.first)}>Open the first event</a></p>`;
  if (step === "when" || step === "where") return html`<${Folded} title="Condition" value=${shown} />`;
  if (step !== "action") return null;
  return html`${isFull(shown.rendered) && html`<${Folded} title="With filled templates" value=${shown.rendered} />`}
    ${isFull(shown.sends) && html`<${Folded} title="Outgoing request" value=${shown.sends} />`}
    ${isObject(shown.result) && isFull(shown.result.after) && html`<${Folded} title="Resulting record" value=${shown.result.after} />`}`;
}

function isFull(value: Json | undefined): value is Json {
  return value !== undefined && value !== null;
}

function Folded({ title, value }: { title: string; value: Json }): View {
  return html`<details><summary>${title}</summary><${JsonView} value=${value} label=${title} /></details>`;
}

/** Lists what must change for the signature to match. */
function Changes({ changes }: { changes: Json | undefined }): View {
  if (!Array.isArray(changes) || changes.length === 0) return null;
  return html`<ul class="explained-changes">${changes.map((one, at) => html`<li key=${at}><code><${SafeText} text=${typeof one === "string" ? one : writeExact(one)} limit=${300} /></code></li>`)}</ul>`;
}

function PersonLine({
  place,
  person: { id, email, status },
}: {
  place: Place;
  person: { [name: string]: Json };
}): View {
  if (typeof email !== "string") return null;
  const words = html`<${SafeText} text=${email} limit=${254} />`;
  return html`<p>${typeof id === "string" ? html`<a href=${pagePath(place, "people", id)}>${words}</a>` : words} <span class="quiet">${String(status ?? "")}</span></p>`;
}

/** Shows each value that was searched, its path, and the result. */
function Rows({ rows }: { rows: readonly Json[] }): View {
  return html`<dl class="explained-rows">${rows.filter(isObject).map((row, at) => {
    const { name, path, found, value, part, ...place } = row;
    const where = Object.entries(place).map(([key, text]) => `${key} ${String(text)}`);
    return html`<div key=${at} class=${found === false ? "lost" : ""}><dt>${String(name ?? part)}</dt><dd>${
      part !== undefined
        ? html`<${SafeText} text=${where.join(", ")} limit=${300} />`
        : html`<code>${String(path)}</code> ${found === true ? html`<${SafeText} text=${writeExact(value ?? null)} limit=${300} />` : "names nothing"}`
    }</dd></div>`;
  })}</dl>`;
}
