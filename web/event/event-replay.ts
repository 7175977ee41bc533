/** Replays an event, after saying what it will skip and what it will send again. What the service refuses is told in its own sentence. */

import { useState } from "preact/hooks";
import type { Definition, Event, Relay } from "../ground/answer.ts";
import { call, sentenceOf } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { Dialog } from "../part/dialog.ts";
import { Icon } from "../part/icon.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { sayAction } from "../relay/relay-words.ts";

type Plan = "again" | "skip" | "run";

const PLAN_WORDS: Readonly<Record<Plan, string>> = {
  again: "is sent again, with the same id",
  skip: "is skipped: it finds its own earlier work",
  run: "runs",
};

/** What a replay will do with each action: call_url repeats, what was done before is skipped, the rest runs. */
export function planReplay(event: Event, definition: Definition): { words: string; plan: Plan }[] {
  const done = new Map<string, number>();
  for (const run of event.runs) {
    const inRun = new Map<string, number>();
    for (const { type, outcome } of run.results)
      if (outcome !== "failed") inRun.set(type, (inRun.get(type) ?? 0) + 1);
    for (const [type, count] of inRun) done.set(type, Math.max(done.get(type) ?? 0, count));
  }
  return definition.actions.map((action) => {
    const { type } = action as { type: string };
    const left = done.get(type) ?? 0;
    done.set(type, left - 1);
    return { words: sayAction(action), plan: type === "call_url" ? "again" : left > 0 ? "skip" : "run" };
  });
}

export function EventReplay({
  place,
  event,
  relay,
  onClose,
  onReplayed,
}: {
  place: Place;
  event: Event;
  /** undefined: it was deleted, or could not be read. */
  relay: Relay | undefined;
  onClose: () => void;
  onReplayed: (event: Event) => void;
}): View {
  const [error, setError] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const replay = async (): Promise<void> => {
    setSending(true);
    setError(null);
    try {
      onReplayed(
        (await call<{ event: Event }>("POST", apiPath(place, "events", event.id, "replay"), {})).event,
      );
    } catch (thrown) {
      setError(sentenceOf(thrown));
      setSending(false);
    }
  };
  return html`<${Dialog} title="Replay this event?" onClose=${onClose}>
    ${
      relay === undefined
        ? html`<${Notice} kind="warn">There is no relay ${event.relay.name} now, so the replay would end without running anything.<//>`
        : html`<p>It runs again by the relay’s present definition, with seven new attempts:</p>
          <ul class="plan">${planReplay(event, relay.definition).map(
            ({ words, plan }, at) =>
              html`<li key=${at} class="plan-${plan}">
                <${Icon} name=${plan === "skip" ? "skip" : plan === "again" ? "replay" : "play"} size=${14} /><span>
                ${words} <b>${PLAN_WORDS[plan]}</b>.</span></li>`,
          )}</ul>
          ${relay.state === "paused" && html`<${Notice} kind="info">The relay is paused, so it waits until you resume it.<//>`}`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending} onClick=${replay}>
        ${isSending ? "Replaying…" : "Replay"}</button></div>
  <//>`;
}
