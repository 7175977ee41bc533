/** Card of the trigger: a sentence, its fields, and when it would start the relay. */
import type { CheckedDefinition } from "../../../src/interfaces/api/explain.ts";
import { html, type View } from "../../base/html.ts";
import { pagePath } from "../../base/place.ts";
import { formatFullTime, formatWhen, isAwayFromUtc, useNow } from "../../base/time-words.ts";
import { SafeText } from "../../component/safe-text.ts";
import { Sentence } from "../../component/sentence.ts";
import { Ago } from "../../component/time.ts";
import { EditedInJson, PartProblems } from "./field-frame.ts";
import type { Part } from "./form-part.ts";
import { useForm } from "./form-scope.ts";
import { GroupFields } from "./group-fields.ts";
import { formatTrigger } from "./trigger-words.ts";

/** Result of the check for a valid schedule or record change. */
export type Occurrences = Pick<CheckedDefinition, "nextTicks" | "recentChanges">;

export function TriggerCard({ part, checked }: { part: Part; checked: Occurrences | null }): View {
  const kind = part.is === "group" ? part.variants?.chosen : null;
  return html`<section class="card form-card" aria-label="Trigger" data-field="trigger"><h2>Trigger</h2>
    <p class="form-sentence"><${SafeText} text=${formatTrigger(part.node)} limit=${400} /></p>
    ${part.is === "json" ? html`<${EditedInJson} part=${part} />` : html`<${PartProblems} part=${part} />`}
    ${part.is === "group" && html`<${GroupFields} part=${part} />`}
    ${kind === "schedule" && html`<${NextTicks} ticks=${checked?.nextTicks ?? []} />`}
    ${kind === "data_change" && html`<${RecentChanges} changes=${checked?.recentChanges} />`}
  </section>`;
}

/** The next times in the reader's zone and in UTC. */
function NextTicks({ ticks }: { ticks: readonly string[] }): View {
  const now = useNow(60_000);
  if (ticks.length === 0) return null;
  return html`<div class="form-occurrences"><h3>Next times</h3>
    <ol>${ticks.map((at) => html`<li key=${at}><time datetime=${at}>${formatFullTime(at)}</time> <span class="quiet">${formatWhen(at, now)}</span></li>`)}</ol>
    ${isAwayFromUtc() && html`<p class="form-hint">The schedule follows UTC, so your local time moves with summer time.</p>`}</div>`;
}

/** The last changes of records, and whether each one would have started the relay. */
function RecentChanges({ changes }: { changes: Occurrences["recentChanges"] }): View {
  const { place, known } = useForm();
  if (changes === undefined) return null;
  const collection = known.root?.members
    .find(({ name }) => name === "trigger")
    ?.value?.members.find(({ name }) => name === "collection")?.value?.value;
  return html`<div class="form-occurrences"><h3>Last changes</h3>
    ${changes.length === 0 && html`<p class="quiet">No record of this collection has changed yet.</p>`}
    <ul>${changes.map(
      ({ record, change, at, wouldRun, reason }) =>
        html`<li key=${`${record} ${at}`}><b>${wouldRun ? "Would start" : "Would not start"}</b> <a class="mono" href=${pagePath(place, "records", collection ?? "", record)}>${record}</a> ${change} <${Ago} at=${at} />
          <span class="quiet"><${Sentence} text=${reason} /></span></li>`,
    )}</ul></div>`;
}
