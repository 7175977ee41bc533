/** One entry of a plan: its outcome, its difference, its warnings, and what a captured request could do with it. */
import type { ApprovalView } from "../../src/operator/sync/approval.ts";
import type { EntryView } from "../../src/operator/sync/plan-view.ts";
import { formatCount } from "../base/count-words.ts";
import { type Json, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { Notice } from "../component/notice.ts";
import { revealText, SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { WarningList } from "../component/warning-list.ts";
import { DiffBox, DiffRows } from "../relay/text-diff-view.ts";

type Shown = NonNullable<ApprovalView["shown"]>["entries"][number];
/** Entry as a dry run or an approval shows it. */
type PlanEntry = EntryView | Shown;

const WORDS: Readonly<Record<PlanEntry["state"], string>> = {
  created: "New in production",
  changed: "Changed",
  edited: "Edited in production since the last promote",
  behind: "Newer in production than the files",
  conflict: "Changed in the files and in production",
  deleted: "Deleted",
  only_there: "Only in production, unchanged",
  unchanged: "Unchanged",
  not_carried: "Not included",
};

/** Reports whether the plan changes the entry. */
export function isCarried({ state }: PlanEntry, replaceEdited: boolean): boolean {
  return (
    state === "created" ||
    state === "changed" ||
    state === "deleted" ||
    (replaceEdited && isUnseen({ state }))
  );
}

/** Reports whether production has a version that the plan's source does not know. */
export function isUnseen({ state }: Pick<PlanEntry, "state">): boolean {
  return state === "edited" || state === "behind" || state === "conflict";
}

/** `app`: the app whose production the entry is about. */
export function PlanEntryCard({
  app,
  entry,
  replaceEdited,
}: {
  app: string;
  entry: PlanEntry;
  replaceEdited: boolean;
}): View {
  const place: Place = { app, environment: "production" };
  const { kind, name, state, warnings, refusal, capturedCall, renamed } = entry;
  const words = isUnseen(entry)
    ? `${WORDS[state]}, ${replaceEdited ? "replaced" : "unchanged"}`
    : WORDS[state];
  return html`<section class="card plan-entry plan-${state}" aria-label="${kind} ${name}">
    <div class="plan-head"><span class="quiet">${kind}</span><h2><${SafeText} text=${name} /></h2>
      <span class="plan-state">${words}</span></div>
    ${renamed !== undefined && html`<${Renamed} renamed=${renamed} />`}
    ${refusal !== null && html`<${Notice} kind="bad"><${Sentence} text=${refusal.message} place=${place} /><//>`}
    ${capturedCall !== null && html`<${CapturedCall} captured=${capturedCall} />`}
    <${WarningList} warnings=${warnings.filter(({ code }) => capturedCall === null || code !== "unsigned_events")} place=${place} />
    <${Difference} entry=${entry} />
  </section>`;
}

/** Shows what a renamed relay has instead of the earlier one, which stays in production. */
function Renamed({ renamed }: { renamed: NonNullable<PlanEntry["renamed"]> }): View {
  const { from, receiverUrl, secret } = renamed;
  return html`<${Notice} kind="warn"><b>Renamed from ${from}.</b> This is a new relay, and ${from} stays in production.${
    receiverUrl !== null && html` The provider must call its new URL <code>${receiverUrl}</code>.`
  }${secret === "new" && " The provider needs its new secret."}${secret === "missing" && " Paste the provider's secret on its page."}<//>`;
}

/** Shows what a person who captures one request can make the relay do, before and after the plan. */
function CapturedCall({ captured }: { captured: NonNullable<PlanEntry["capturedCall"]> }): View {
  const { before, after, widens } = captured;
  if (after === null)
    return html`<${Notice} kind="good">Anyone with a captured request could make it <${Sentence} text=${before ?? ""} />, and nothing more.<//>`;
  return html`<${Notice} kind=${widens ? "bad" : "warn"}>
    <b>${widens ? "A captured request gives more than now." : "A captured request gives the same as now."}</b> Its sender does not sign its requests, and <code>trustUnsignedEvents</code> lets the relay act on them. Anyone who captures one request can make this relay <${Sentence} text=${after} />.
    ${widens && html` ${before === null ? "In production this is not possible yet." : html`Now they can make it <${Sentence} text=${before} />.`}`}<//>`;
}

function Difference({ entry }: { entry: PlanEntry }): View {
  if ("diff" in entry) {
    if (entry.diff.length === 0) return null;
    return html`<${DiffBox} label="Differences of ${entry.name}">${entry.diff.map(
      ({ field, before, after }) => html`<div class="diff-gap">${revealText(field)}</div>
        <${DiffRows} left=${textOf(before)} right=${textOf(after)} gap="that stay" />`,
    )}<//>`;
  }
  const [before, after] = [textOf(entry.before), textOf(entry.after)];
  if (before === after) return null;
  return html`<${DiffBox} label="Difference of ${entry.name}: minus is production now, plus is what it becomes">
    <${DiffRows} left=${before} right=${after} gap="that stay" /><//>`;
}

function textOf(value: unknown): string {
  return value === null || value === undefined ? "" : writeExact(value as Json, 2);
}

/** Summarizes the entries that the plan leaves unchanged or keeps. */
export function PlanRest({ entries }: { entries: readonly PlanEntry[] }): View {
  const same = entries.filter(({ state }) => state === "unchanged").length;
  const kept = entries.filter(({ state }) => state === "only_there");
  return html`<p class="quiet">${[
    ...(same > 0 ? [`${formatCount(same, "item")} equal on both sides.`] : []),
    ...(kept.length > 0
      ? [`Only in production, unchanged: ${kept.map(({ kind, name }) => `${kind} ${name}`).join(", ")}.`]
      : []),
    "Nothing is deleted. Data and secrets are not copied.",
  ].join(" ")}</p>`;
}
