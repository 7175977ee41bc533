/** Import of events that a provider lists but never delivered: the user chooses a file or pastes it, sees the plan, then imports it. */

import { useState } from "preact/hooks";
import type { SenderView } from "../../src/rules/senders/sender-view.ts";
import { sentenceOf } from "../base/api.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import {
  countNew,
  MAX_FILE_MB,
  type MissedCause,
  type MissedFile,
  type MissedTally,
  passOver,
  readFile,
} from "./import-file.ts";

const SHOWN_CAUSES = 8;

type Stage =
  | { is: "choosing" }
  | { is: "reading" | "importing"; done: number }
  | { is: "planned"; file: MissedFile; plan: MissedTally }
  | { is: "imported"; tally: MissedTally };

export function RelayImport({
  place,
  name,
  onClose,
}: {
  place: Place;
  name: string;
  onClose: () => void;
}): View {
  const [stage, setStage] = useState<Stage>({ is: "choosing" });
  const [error, setError] = useState<string | null>(null);
  const [pasted, setPasted] = useState("");
  const relay = apiPath(place, "relays", name);
  const path = `${relay}/import-missed`;
  const sender = useLoad<{ sender: SenderView | null }>(`${relay}/sender`).data?.sender ?? null;
  const choose = async (chosen: File | undefined): Promise<void> => {
    setError(null);
    if (chosen === undefined) return;
    if (chosen.size > MAX_FILE_MB * 2 ** 20) {
      setError(
        `The file is larger than ${MAX_FILE_MB} MB: import it with relay import-missed ${name} < file.`,
      );
      return;
    }
    setStage({ is: "reading", done: 0 });
    try {
      const file = await readFile(chosen, sender?.export?.forms ?? []);
      const asked = { dryRun: true, version: null, followers: null };
      const plan = await passOver(path, file, asked, (done) => setStage({ is: "reading", done }));
      setStage({ is: "planned", file, plan });
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setStage({ is: "choosing" });
    }
  };
  const carry = async ({ file, plan }: Extract<Stage, { is: "planned" }>): Promise<void> => {
    setError(null);
    let entered = 0;
    setStage({ is: "importing", done: 0 });
    try {
      const tally = await passOver(
        path,
        file,
        { dryRun: false, version: plan.version, followers: plan.followers },
        (done, sofar) => {
          entered = countNew(sofar);
          setStage({ is: "importing", done });
        },
      );
      setStage({ is: "imported", tally });
    } catch (thrown) {
      setError(
        `${sentenceOf(thrown)} ${formatCount(entered, "event")} were imported before the stop. Choose the same file again: Relay skips events that it already has.`,
      );
      setStage({ is: "choosing" });
    }
    invalidate(apiPath(place, "events"));
  };
  const isBusy = stage.is === "reading" || stage.is === "importing";
  return html`<${Dialog} title="Import missed events into ${name}" onClose=${onClose} mustAnswer=${isBusy} wide>
    <div class="stack">
      ${
        stage.is === "choosing" &&
        html`<p>Choose or paste an export: a JSON list of events, or one event per line. Relay skips events that it already received.</p>
          ${
            sender?.export !== undefined &&
            html`<p>${sender.title} gives the list with <code class="wrap">${sender.export.how}</code></p>`
          }
          <p class="quiet">An event is the body as the provider lists it, or the complete request as ${" "}<code>{"headers":{…},"body":"…"}</code>.</p>
          <p class="quiet">Events without a valid signature are unsigned. A relay that acts on people rejects unsigned events: ask the provider to send them again.</p>
          <label class="field"><span>Export file</span><input type="file" accept=".jsonl,.ndjson,.json,.txt"
            onChange=${(event: Event) => void choose((event.target as HTMLInputElement).files?.[0])} /></label>
          <label class="field"><span>Or paste the export</span><textarea rows="4" spellcheck=${false} value=${pasted}
            onInput=${(event: Event) => setPasted((event.target as HTMLTextAreaElement).value)} /></label>`
      }
      ${
        isBusy &&
        html`<p role="status">${stage.is === "reading" ? "Checking each line…" : "Importing…"}</p>
          <progress class="missed-progress" value=${stage.done} max="1" aria-label=${stage.is === "reading" ? "Read" : "Imported"} />`
      }
      ${
        stage.is === "planned" &&
        html`<p>The plan of <b><${SafeText} text=${stage.file.name} limit=${80} /></b>; nothing is imported yet.</p>
        <${TallyView} tally=${stage.plan} />
        ${stage.file.hasMore && html`<${Notice} kind="warn">This is not the whole list: the provider says that another page follows. Import the next page too.<//>`}`
      }
      ${
        stage.is === "imported" &&
        html`<${Notice} kind="good">${formatCount(countNew(stage.tally), "event")} imported. They run now.<//>
          <${TallyView} tally=${stage.tally} />`
      }
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    </div>
    <div class="dialog-actions">
      <button type="button" disabled=${isBusy} onClick=${onClose}>${stage.is === "imported" ? "Close" : "Cancel"}</button>
      ${stage.is === "choosing" && pasted.trim() !== "" && html`<button type="button" class="primary" onClick=${() => void choose(new File([pasted], "pasted text"))}>Show the plan</button>`}
      ${
        stage.is === "planned" &&
        html`<button type="button" class="primary" disabled=${countNew(stage.plan) === 0} onClick=${() => void carry(stage)}>
          ${countNew(stage.plan) === 0 ? "Nothing to import" : `Import ${formatCount(countNew(stage.plan), "event")}`}</button>`
      }
    </div><//>`;
}

function TallyView({ tally }: { tally: MissedTally }): View {
  const { counts, verified, causes, lines, relays } = tally;
  const sorted = [...causes.values()].sort((one, other) => other.count - one.count);
  const left = sorted.slice(SHOWN_CAUSES).reduce((sum, one) => sum + one.count, 0);
  const unsigned = counts.new - verified;
  return html`<dl class="facts">
      <div><dt>Lines</dt><dd>${formatNumber(lines)}</dd></div>
      <div><dt>New</dt><dd><b>${formatNumber(counts.new)}</b>${counts.new > 0 && html`<span class="quiet"> ${formatNumber(verified)} verified, ${formatNumber(unsigned)} not</span>`}</dd></div>
      <div><dt>Duplicates</dt><dd>${formatNumber(counts.known)}</dd></div>
      <div><dt>Ignored (when)</dt><dd>${formatNumber(counts.ignored)}</dd></div>
      <div><dt>Rejected</dt><dd>${formatNumber(counts.refused)}</dd></div>
    </dl>
    ${
      relays.size > 0 &&
      html`<p>Each line is offered to this relay and to those that follow it: ${formatCount(countNew(tally), "new event")}.</p>
      <ul class="missed-causes">${[...relays].map(
        ([relay, own]) =>
          html`<li key=${relay}><b>${relay}</b>: ${formatNumber(own.new)} new, ${formatCount(own.known, "duplicate")}, ${formatNumber(own.ignored)} ignored, ${formatNumber(own.refused)} rejected</li>`,
      )}</ul>`
    }
    ${sorted.length > 0 && html`<${Causes} causes=${sorted.slice(0, SHOWN_CAUSES)} />`}
    ${left > 0 && html`<details><summary>${formatCount(left, "line")} for other causes</summary><${Causes} causes=${sorted.slice(SHOWN_CAUSES)} /></details>`}`;
}

function Causes({ causes }: { causes: readonly MissedCause[] }): View {
  return html`<ul class="missed-causes">${causes.map(
    (cause) =>
      html`<li key=${cause.message}><b>${cause.outcome === "refused" ? "Rejected" : "Ignored"}</b>: ${formatCount(cause.count, "line")} (${cause.lines.join(", ")}${cause.count > cause.lines.length ? ", …" : ""}): <${Sentence} text=${cause.message} /></li>`,
  )}</ul>`;
}
