/** Runs of a schedule that a hold of the environment skipped, with a dialog that starts the chosen ones. */
import { useState } from "preact/hooks";
import type { SkippedRunsView, StartedRunsView } from "../../src/engine/schedule/skipped-run.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { formatMoment, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { Moment } from "../component/time.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";

const REFRESH_MS = 10_000;

export function RelaySkipped({ place, name }: { place: Place; name: string }): View {
  const path = `${apiPath(place, "relays", name)}/skipped`;
  const { data } = useLoad<{ skipped: SkippedRunsView }>(path, REFRESH_MS);
  const [isOpen, setOpen] = useState(false);
  if (data === undefined) return null;
  const { held, runs } = data.skipped;
  if (runs.length === 0 && !isOpen) return null;
  return html`<${Notice} kind="info">A hold skipped <b>${formatCount(runs.length, "run")}</b> of this schedule, the last at <${Moment} at=${runs.at(-1)?.at ?? ""} />.${" "}
    ${held ? "They do not run after the release" : "They do not run"}, unless you start them.${" "}
    <button data-needs="replay" type="button" onClick=${() => setOpen(true)}>Run the ${runs.length === 1 ? "skipped run" : `${runs.length} skipped runs`}…</button><//>
    ${isOpen && html`<${StartDialog} place=${place} name=${name} path=${path} skipped=${data.skipped} onClose=${() => setOpen(false)} />`}`;
}

interface Props {
  place: Place;
  name: string;
  path: string;
  skipped: SkippedRunsView;
  onClose: () => void;
}

/** Offers the runs that were skipped when it opened, newest first. All are chosen at first. */
function StartDialog({ place, name, path, skipped, onClose }: Props): View {
  const [offered] = useState(() => skipped.runs.map(({ at }) => at).toReversed());
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set(offered));
  const { send, isSending, error } = useSend();
  const now = useNow(60_000);
  const choose = (at: string): void => {
    const next = new Set(chosen);
    if (!next.delete(at)) next.add(at);
    setChosen(next);
  };
  const isAll = chosen.size === offered.length;
  const start = async (): Promise<void> => {
    const sent = await send<StartedRunsView>({
      method: "POST",
      path: `${path}/run`,
      body: { at: [...chosen] },
      changes: [path, apiPath(place, "events"), apiPath(place, "relays"), apiPath(place, "overview")],
    });
    if (sent === null) return;
    notifyDone(formatSent(sent.answer));
    onClose();
  };
  return html`<${Dialog} title="Run skipped runs of ${name}?" onClose=${onClose}>
    <p>Each run has its scheduled time and uses the current definition. A run never starts twice. The list has at most the last 100 runs of the current trigger.${
      skipped.held && " The environment is on hold, so the runs wait for the release."
    }</p>
    <label class="plan-choice"><input type="checkbox" checked=${isAll} onChange=${() => setChosen(new Set(isAll ? [] : offered))} /> All ${formatCount(offered.length, "run")}</label>
    <ul class="skipped-runs" aria-label="Skipped runs">${offered.map(
      (at) =>
        html`<li key=${at}><label class="plan-choice"><input type="checkbox" checked=${chosen.has(at)} onChange=${() => choose(at)} /> <time datetime=${at}>${formatMoment(at, now, { dated: true })}</time></label></li>`,
    )}</ul>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending || chosen.size === 0} onClick=${() => void start()}>
        ${isSending ? "Starting…" : chosen.size === 0 ? "Run" : `Run ${formatCount(chosen.size, "skipped run")}`}</button></div><//>`;
}

function formatSent({ held, runs }: StartedRunsView): string {
  const started = runs.filter((run) => run.started).length;
  const known = runs.length - started;
  const rest = known === 0 ? "" : ` ${formatCount(known, "run")} had an event already.`;
  return `${formatCount(started, "run")} started.${rest}${held ? " They wait for the release of the hold." : ""}`;
}
