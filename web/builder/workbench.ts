/**
 * Workbench of a definition: the form, the JSON, the request in view and the expected outcome. Each is a view of one text. Wide windows show
 * them side by side, and narrow ones show one at a time. The outcome stays at the lower edge.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { useWide } from "../base/use-wide.ts";
import { DefinitionEditor } from "../editor/definition-editor.ts";
import { readTree } from "../editor/json-tree.ts";
import { useDefinitionCheck } from "../editor/use-definition-check.ts";
import css from "./builder.css" with { type: "text" };
import { DefinitionForm } from "./form/definition-form.ts";
import { formatProblem } from "./form/form-problem.ts";
import type { InsertTarget } from "./insert-target.ts";
import { OutcomeBar } from "./outcome-bar.ts";
import { triggerOf } from "./payload-use.ts";
import { PayloadView } from "./payload-view.ts";
import { useSeenRequest } from "./request-choice.ts";
import { inputOfSeen, type SeenRequest } from "./seen-request.ts";
import { useStyle } from "./style.ts";
import { type ChangedRecord, useChangedRecord } from "./use-changed-record.ts";
import { type ExplainInput, useOutcome } from "./use-outcome.ts";
import { type BuilderView, keepView, recallView } from "./view-choice.ts";

const TWO_COLUMNS_PX = 1_000;
const THREE_COLUMNS_PX = 1_600;

/** First field with a problem, or the list that has one. */
const WRONG =
  ".workbench-form :is([aria-invalid=true], .form-actions-list > .field-problem ~ .form-new-action > [data-add-action])";

type Panel = "form" | "json" | "request";

const WORDS: Readonly<Record<Panel, string>> = { form: "Form", json: "JSON", request: "Request" };
const VIEWS: readonly (readonly [BuilderView, string])[] = [
  ["both", "Form and JSON"],
  ["json", "JSON only"],
];

export function Workbench({
  place,
  text,
  onText,
  refused,
  warned = [],
  onSave,
  relay,
  isChanged,
  secret = "",
  sells = false,
  seenKey,
  actions,
  children,
}: {
  place: Place;
  text: string;
  onText: (next: string) => void;
  /** Problems for which the service rejected the last save. */
  refused: readonly Problem[];
  /** Warnings of the last save. */
  warned?: readonly Warning[];
  onSave: () => void;
  /** Name of the saved relay; null: it is new. */
  relay: string | null;
  /** True if the text differs from the saved definition, so that its cases can have other results. */
  isChanged: boolean;
  /** Secret that the user typed for a new relay. */
  secret?: string;
  /** True if the new relay must sell the products and plans that nothing sells. */
  sells?: boolean;
  /** Key under which this tab keeps the request in view. */
  seenKey: string;
  /** Buttons in the bar at the lower edge. */
  actions?: View;
  /** Content between the columns and the bar. */
  children?: View;
}): View {
  useStyle(css);
  const check = useDefinitionCheck(place, text, refused);
  const wasRefused = useRef(false);
  wasRefused.current ||= refused.length > 0;
  const isTried = relay !== null || wasRefused.current;
  const seen = useSeenRequest(place, seenKey, relay);
  const hasTwo = useWide(TWO_COLUMNS_PX);
  const hasThree = useWide(THREE_COLUMNS_PX);
  const [view, setView] = useState(recallView);
  const [chosen, setPanel] = useState<Panel | null>(null);
  const [jump, setJump] = useState<{ from: number; to: number } | null>(null);
  const [target, setTarget] = useState<InsertTarget | null>(null);
  const [stop] = check.placed.filter(({ severity }) => severity === "error");
  const fault = check.isJson ? check.checked.problems[0] : stop;
  const root = useMemo(() => readTree(text), [text]);
  const changed = useChangedRecord(place, root, check.checked.recentChanges);
  const kind = triggerOf(root);
  const outcome = useOutcome({
    place,
    text,
    input: { ...inputOf(kind, seen.request, changed, secret), ...(sells && { sell: true }) },
    relay: isChanged ? relay : null,
    problem: fault === undefined ? null : formatProblem(fault, true),
    isChecking: check.isJson && check.checked.state === "checking",
    of: check.known,
  });
  // A narrow window shows one view at a time, so the form never has to leave. Its first view is the chosen one.
  const editors = hasTwo ? view : "both";
  const columns = columnsOf(editors, hasTwo, hasThree);
  const free = columns.find((column) => column.length > 1) ?? [];
  // A new relay is built from the values of its request, so the request is next to the form.
  const first = hasTwo && relay === null ? "request" : !hasTwo && view === "json" ? "json" : free[0];
  const panel = free.find((one) => one === chosen) ?? free.find((one) => one === first);
  const isShown = (one: Panel): boolean =>
    columns.some((column) => column.includes(one)) && (!free.includes(one) || one === panel);
  const chooseView = (next: BuilderView): void => {
    keepView(next);
    setView(next);
    if (next === "json") setTarget(null);
  };
  // A field in a hidden view must be visible before it can have the focus.
  const insertTarget: InsertTarget | null =
    target === null || !free.includes("form")
      ? target
      : {
          ...target,
          insert: (words) => {
            setPanel("form");
            requestAnimationFrame(() => target.insert(words));
          },
        };
  const showJson = (range: { from: number; to: number }): void => {
    setPanel("json");
    setJump({ ...range });
  };
  const host = useRef<HTMLDivElement>(null);
  // A refused save leads to its first problem, which can be far from the button.
  useEffect(() => {
    if (refused.length === 0 || stop === undefined) return;
    if (!check.isJson || editors === "json") return showJson(stop);
    if (free.includes("form")) setPanel("form");
    requestAnimationFrame(() => {
      const field = host.current?.querySelector<HTMLElement>(WRONG);
      field?.closest("details")?.setAttribute("open", "");
      field?.focus();
    });
  }, [refused]);
  return html`<div class="workbench" ref=${host}>
    <div class="workbench-head">
      ${hasTwo && html`<div class="tree-or-raw" role="group" aria-label="Editors">${VIEWS.map(([one, words]) => html`<button key=${one} type="button" aria-pressed=${String(one === view)} onClick=${() => chooseView(one)}>${words}</button>`)}</div>`}
      ${free.length > 0 && html`<div class="tree-or-raw workbench-panels" role="group" aria-label="View">${free.map((one) => html`<button key=${one} type="button" aria-pressed=${String(one === panel)} onClick=${() => setPanel(one)}>${WORDS[one]}</button>`)}</div>`}
    </div>
    <div class="workbench-columns columns-${columns.length} with-${editors}">
      ${
        editors === "both" &&
        html`<section key="form" class="workbench-form" aria-label="Form" hidden=${!isShown("form")}>
        <${DefinitionForm} place=${place} text=${text} onText=${onText} saved=${relay} known=${check.known} placed=${check.placed} outcome=${outcome.explanation}
          checked=${check.checked} isTried=${isTried} onTarget=${setTarget} onShowJson=${showJson} /></section>`
      }
      <section key="json" class="workbench-json" aria-label="JSON" hidden=${!isShown("json")}>
        <${DefinitionEditor} text=${text} onText=${onText} check=${check} warned=${warned} jump=${jump} onSave=${onSave} /></section>
      <section key="request" class="workbench-request" aria-label="Request in view" hidden=${!isShown("request")}>
        <${PayloadView} place=${place} text=${text} onText=${onText} relay=${relay} seen=${seen} explanation=${outcome.explanation} known=${check.known}
          changed=${changed} nextTick=${check.checked.nextTicks?.[0]} target=${insertTarget} /></section>
    </div>
    ${children}
    <${OutcomeBar} place=${place} outcome=${outcome}>${actions}<//>
  </div>`;
}

/** Returns the columns from the left. A column with several views shows one of them. */
function columnsOf(view: BuilderView, hasTwo: boolean, hasThree: boolean): readonly (readonly Panel[])[] {
  if (view === "json") return hasTwo ? [["json"], ["request"]] : [["json", "request"]];
  if (hasThree) return [["form"], ["json"], ["request"]];
  return hasTwo ? [["form"], ["json", "request"]] : [["form", "json", "request"]];
}

/** Returns what the service explains with the definition. Nothing: it makes an example. */
function inputOf(
  kind: string | null,
  request: SeenRequest | null,
  changed: ChangedRecord | null,
  secret: string,
): ExplainInput {
  if (kind === "schedule") return {};
  if (kind === "data_change") {
    if (changed === null) return {};
    const { record, change } = changed;
    const person = record.owner ?? record.recipient;
    return { record: record.data, change, ...(person === null ? {} : { person }) };
  }
  const own = secret.trim() === "" ? {} : { secret };
  if (request === null) return own;
  return { ...own, ...inputOfSeen(request) };
}
