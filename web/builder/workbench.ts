/**
 * Workbench of a definition: the JSON, the request in view and the expected outcome. Each is a view of one text. Wide windows show
 * them side by side, and narrow ones show one at a time. The outcome stays at the lower edge.
 */
import { useMemo, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { useWide } from "../base/use-wide.ts";
import { DefinitionEditor } from "../editor/definition-editor.ts";
import { readTree } from "../editor/json-tree.ts";
import { useDefinitionCheck } from "../editor/use-definition-check.ts";
import css from "./builder.css" with { type: "text" };
import { OutcomeBar } from "./outcome-bar.ts";
import { triggerOf } from "./payload-use.ts";
import { PayloadView } from "./payload-view.ts";
import { useSeenRequest } from "./request-choice.ts";
import type { SeenRequest } from "./seen-request.ts";
import { useStyle } from "./style.ts";
import { type ChangedRecord, useChangedRecord } from "./use-changed-record.ts";
import { type ExplainInput, useOutcome } from "./use-outcome.ts";

const TWO_COLUMNS_PX = 1_000;

type Panel = "json" | "request";

const WORDS: Readonly<Record<Panel, string>> = { json: "JSON", request: "Request" };

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
  /** Key under which this tab keeps the request in view. */
  seenKey: string;
  /** Buttons in the bar at the lower edge. */
  actions?: View;
  /** Content between the columns and the bar. */
  children?: View;
}): View {
  useStyle(css);
  const check = useDefinitionCheck(place, text, refused);
  const seen = useSeenRequest(place, seenKey, relay);
  const isWide = useWide(TWO_COLUMNS_PX);
  const [panel, setPanel] = useState<Panel>("json");
  const [stop] = check.placed.filter(({ severity }) => severity === "error");
  const root = useMemo(() => readTree(text), [text]);
  const changed = useChangedRecord(place, root, check.checked.recentChanges);
  const kind = triggerOf(root);
  const outcome = useOutcome({
    place,
    text,
    input: inputOf(kind, seen.request, changed, secret),
    relay: isChanged ? relay : null,
    problem: check.isJson ? null : (stop?.message ?? null),
  });
  const panels: readonly Panel[] = ["json", "request"];
  const isShown = (one: Panel): boolean => isWide || one === panel;
  return html`<div class="workbench">
    ${
      !isWide &&
      html`<div class="workbench-head"><${PanelChoice} panels=${panels} chosen=${panel} onChoose=${setPanel} /></div>`
    }
    <div class="workbench-columns ${isWide ? "columns-2" : ""}">
      <section class="workbench-json" aria-label="JSON" hidden=${!isShown("json")}>
        <${DefinitionEditor} text=${text} onText=${onText} check=${check} warned=${warned} onSave=${onSave} /></section>
      <section class="workbench-request" aria-label="Request in view" hidden=${!isShown("request")}>
        <${PayloadView} place=${place} text=${text} onText=${onText} relay=${relay} seen=${seen} explanation=${outcome.explanation} known=${check.known}
          changed=${changed} nextTick=${check.checked.nextTicks?.[0]} target=${null} /></section>
    </div>
    ${children}
    <${OutcomeBar} place=${place} outcome=${outcome}>${actions}<//>
  </div>`;
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
  const { body, contentType, headers, search } = request;
  return {
    ...own,
    body,
    ...(contentType === null ? {} : { contentType }),
    ...(headers === null ? {} : { headers }),
    ...(search === "" ? {} : { search }),
  };
}

/** Buttons that choose the visible view, where only one fits. */
function PanelChoice({
  panels,
  chosen,
  onChoose,
}: {
  panels: readonly Panel[];
  chosen: Panel;
  onChoose: (panel: Panel) => void;
}): View {
  return html`<div class="tree-or-raw" role="group" aria-label="View">${panels.map(
    (one) =>
      html`<button key=${one} type="button" aria-pressed=${String(one === chosen)} onClick=${() => onChoose(one)}>${WORDS[one]}</button>`,
  )}</div>`;
}
