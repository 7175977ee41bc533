/**
 * Bar at the lower edge of the window with the expected outcome in one line: verified, matched, for whom, and each action. It opens the steps. It
 * has a fixed height, so nothing moves when an answer arrives.
 */
import { useState } from "preact/hooks";
import type { Simulation } from "../../src/insight/simulate/step.ts";
import { listDifferences } from "../audit/differences.ts";
import { isObject, type Json, parseExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { formatTimesIn, useNow } from "../base/time-words.ts";
import { Icon, type IconName } from "../component/icon.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { ChangedCaseList } from "../relay/changed-cases.ts";
import { ExplainedSteps } from "../relay/explained-steps.ts";
import { formatActionStep, formatActionType } from "../relay/relay-words.ts";
import type { Outcome } from "./use-outcome.ts";

type Step = Simulation["steps"][number];

interface Fact {
  icon: IconName;
  mood: "good" | "wait" | "bad";
  words: string;
}

const WOULD: Readonly<Record<Simulation["would"], { words: string } & Pick<Fact, "icon" | "mood">>> = {
  run: { words: "It would run", icon: "check", mood: "good" },
  fail: { words: "It would fail", icon: "cross", mood: "bad" },
  wait: { words: "It would wait", icon: "pause", mood: "wait" },
  ignore: { words: "It would be ignored", icon: "skip", mood: "wait" },
  duplicate: { words: "Received before, shown as new", icon: "skip", mood: "wait" },
  refuse: { words: "It would be rejected", icon: "cross", mood: "bad" },
};
const MAX_CHANGES = 3;
const CHANGE_CHARS = 60;

export function OutcomeBar({
  place,
  outcome: { explanation, changed, problem, isOld },
  children,
}: {
  place: Place;
  outcome: Outcome;
  /** Buttons at the end of the bar. */
  children?: View;
}): View {
  const [isOpen, setOpen] = useState(false);
  const now = useNow(60_000);
  const isDim = isOld || problem !== null;
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !isOpen) return;
    event.stopPropagation();
    setOpen(false);
  };
  return html`<section class="outcome" aria-label="Expected outcome" onKeyDown=${press}>
    ${
      isOpen &&
      html`<div class="outcome-steps ${isDim ? "outcome-old" : ""}" tabindex="0" role="group" aria-label="Details of the outcome">
        ${problem !== null && html`<${Notice} kind="warn"><${Sentence} text=${problem} />${explanation !== null && " Below is the outcome before this."}<//>`}
        ${changed.length > 0 && html`<${Notice} kind="warn"><${ChangedCaseList} changed=${changed} /><//>`}
        ${explanation !== null && html`<${ActionChanges} explanation=${explanation} now=${now} /><${ExplainedSteps} place=${place} explanation=${explanation} />`}
      </div>`
    }
    <div class="outcome-line">
      <p class="outcome-facts" role="status">${
        problem !== null
          ? html`<span class="outcome-fact fact-wait"><${Icon} name="attention" size=${13} />Not valid yet</span><span class="outcome-why"><${Sentence} text=${problem} /></span>`
          : explanation === null
            ? html`<span class="quiet">Relay checks what this relay would do…</span>`
            : html`<span class="outcome-all ${isDim ? "outcome-old" : ""}">${factsOf(explanation, now).map(
                ({ icon, mood, words }, at) =>
                  html`<span key=${at} class="outcome-fact fact-${mood}"><${Icon} name=${icon} size=${13} /><${SafeText} text=${words} limit=${120} /></span>`,
              )}${changed.length > 0 && html`<span class="outcome-fact fact-wait"><${Icon} name="attention" size=${13} />${changed.length > 1 ? `${changed.length} cases change` : "1 case changes"}</span>`}</span>`
      }</p>
      <div class="outcome-actions">
        <button type="button" aria-expanded=${String(isOpen)} disabled=${explanation === null && problem === null} onClick=${() => setOpen(!isOpen)}>
          <${Icon} name=${isOpen ? "down" : "up"} size=${13} />${isOpen ? "Hide steps" : "Show steps"}</button>
        ${children}
      </div>
    </div>
  </section>`;
}

/** Says the outcome, then what is wrong, because a narrow bar is cut, and then in order: the signature, the condition, the person, and each action. */
function factsOf({ would, steps }: Simulation, now: number): Fact[] {
  const facts = steps.flatMap((step) => factOf(step, now) ?? []);
  const isBad = ({ mood }: Fact): boolean => mood === "bad";
  return [WOULD[would], ...facts.filter(isBad), ...facts.filter((fact) => !isBad(fact))];
}

function factOf(step: Step, now: number): Fact | null {
  const mood = ({ ok: "good", stops: "bad", unknown: "wait" } as const)[step.outcome];
  const icon = ({ ok: "check", stops: "cross", unknown: "help" } as const)[step.outcome];
  const say = (words: string): Fact => ({ icon, mood, words });
  const detail = step.detail as unknown as Json;
  switch (step.step) {
    case "signature":
      return say({ ok: "Verified", stops: "Not verified", unknown: "Signature not checked" }[step.outcome]);
    case "when":
    case "where":
      return say({ ok: "Matches", stops: "Does not match", unknown: "Match not checked" }[step.outcome]);
    case "person":
      if (step.outcome !== "ok") return say("No person");
      return isObject(detail) && typeof detail.email === "string" ? say(detail.email) : null;
    case "action": {
      if (!isObject(detail)) return null;
      const type = String(detail.type);
      const isSkipped = isObject(detail.result) && detail.result.outcome === "skipped";
      const why = formatTimesIn(formatActionStep(type, step.message), now);
      const more = step.outcome === "stops" || isSkipped ? `: ${lowerFirst(why)}` : "";
      const [change] = changesOf(detail, now);
      const words = `${formatActionType(type)}${more === "" && change !== undefined ? `: ${change}` : more}`;
      return isSkipped ? { icon: "skip", mood: "wait", words } : say(words);
    }
    default:
      return null;
  }
}

function lowerFirst(words: string): string {
  return words.charAt(0).toLowerCase() + words.slice(1);
}

/** Lists what an action would change, such as "balance 10 → 15". */
function changesOf(detail: { [name: string]: Json }, now: number): string[] {
  const { result } = detail;
  if (!isObject(result) || !("before" in result) || !("after" in result)) return [];
  const before = result.before ?? null;
  // A new record has no earlier value, and its fields are in the steps.
  if (before === null) return [];
  return listDifferences(before, result.after ?? null).flatMap(({ field, before: was, after: is }) =>
    was === undefined ? [] : [`${field} ${formatValue(was, now)} → ${formatValue(is ?? "nothing", now)}`],
  );
}

/** Says a list as its number of items, because its items are ids. */
function formatValue(text: string, now: number): string {
  if (text.startsWith("[")) {
    try {
      const list = parseExact(text);
      if (Array.isArray(list)) return String(list.length);
    } catch {
      // A text that only begins like a list.
    }
  }
  return cut(text === "true" ? "yes" : text === "false" ? "no" : formatTimesIn(text, now));
}

function cut(text: string): string {
  return text.length > CHANGE_CHARS ? `${text.slice(0, CHANGE_CHARS)}…` : text;
}

/** Table of the actions with the change of each one. */
function ActionChanges({ explanation: { steps }, now }: { explanation: Simulation; now: number }): View {
  const actions = steps.filter(({ step }) => step === "action");
  if (actions.length === 0) return null;
  return html`<ol class="outcome-changes" aria-label="Changes">${actions.map((step, at) => {
    const detail = step.detail as unknown as Json;
    if (!isObject(detail)) return null;
    const type = String(detail.type);
    const changes = changesOf(detail, now).slice(0, MAX_CHANGES);
    return html`<li key=${at}><b>${at + 1}. ${formatActionType(type)}</b>
      ${changes.length > 0 ? html`<span><${SafeText} text=${changes.join(", ")} limit=${300} /></span>` : html`<span class="quiet"><${Sentence} text=${formatActionStep(type, step.message)} /></span>`}</li>`;
  })}</ol>`;
}
