/** Actions for the selected events. */
import { useState } from "preact/hooks";
import type { EventItem } from "../base/answer.ts";
import { call, sentenceOf } from "../base/api.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Icon } from "../component/icon.ts";
import type { Selection } from "../component/selection.ts";
import { notifyDone, notifyFailed } from "../component/toast.ts";

interface Props {
  place: Place;
  items: readonly EventItem[];
  selection: Selection;
  onReplay: () => void;
}

export function ChosenBar({ place, items, selection, onReplay }: Props): View {
  const { chosen } = selection;
  if (chosen.size === 0) return null;
  const waiting = items.filter(
    ({ id, state, nextAttemptAt }) => chosen.has(id) && state === "queued" && nextAttemptAt !== null,
  );
  const isReplayable = waiting.length < chosen.size;
  return html`<div class="chosen-bar" role="region" aria-label="Selected events">
    <b role="status">${formatCount(chosen.size, "event")} selected</b>
    ${waiting.length > 0 && html`<${RetryNow} place=${place} waiting=${waiting} isPrimary=${!isReplayable} />`}
    ${isReplayable && html`<button data-needs="replay" type="button" class="primary" onClick=${onReplay}><${Icon} name="replay" size=${14} />Replay ${chosen.size === 1 ? "it" : "them"}…</button>`}
    <${CopyButton} text=${[...chosen].join("\n")} label="Copy ids" words="Copy ids" />
    <button type="button" onClick=${() => selection.set([])}>Clear</button>
  </div>`;
}

/** Retries the events that wait for their next attempt, one after another. */
function RetryNow({
  place,
  waiting,
  isPrimary,
}: {
  place: Place;
  waiting: readonly EventItem[];
  isPrimary: boolean;
}): View {
  const [isSending, setSending] = useState(false);
  const retry = async (): Promise<void> => {
    setSending(true);
    const refusals: string[] = [];
    for (const { id } of waiting)
      await call("POST", apiPath(place, "events", id, "retry"), {}).catch((thrown: unknown) =>
        refusals.push(sentenceOf(thrown)),
      );
    setSending(false);
    invalidate(apiPath(place, "events"));
    const done = waiting.length - refusals.length;
    if (done > 0) notifyDone(`Retrying ${formatCount(done, "event")} now. The results appear in the list.`);
    for (const refusal of new Set(refusals)) notifyFailed(refusal);
  };
  return html`<button data-needs="replay" type="button" class=${isPrimary ? "primary" : ""} disabled=${isSending} title="A retry counts as one of the seven attempts" onClick=${() => void retry()}>
    <${Icon} name="play" size=${14} />${isSending ? "Retrying…" : `Retry ${formatCount(waiting.length, "event")} now`}</button>`;
}
