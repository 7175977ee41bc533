/**
 * Dialog that replays an event after showing what each action will do. The service makes the plan. The user can also
 * run an action that was edited after its work or did its work for another person.
 */
import { useState } from "preact/hooks";
import type { PlannedAction, ReplayPlan } from "../../src/engine/event/replay-plan.ts";
import type { EventCauseView } from "../../src/insight/overview/failure-cause.ts";
import type { Event, Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { formatAction } from "../relay/relay-words.ts";

const ICONS = {
  run: "play",
  skip: "skip",
  again: "replay",
  edited: "skip",
  other_person: "skip",
  settle: "clock",
} as const;

/** Plans in which an action does nothing. */
const DONE: ReadonlySet<PlannedAction["will"]> = new Set(["skip", "edited", "other_person"]);

export function EventReplay({
  place,
  id,
  onClose,
  onReplayed,
}: {
  place: Place;
  /** Id of the event. */
  id: string;
  onClose: () => void;
  onReplayed: (event: Event) => void;
}): View {
  const path = apiPath(place, "events", id, "replay");
  const plan = useLoad<{ plan: ReplayPlan }>(path);
  const [chosen, setChosen] = useState<readonly number[]>([]);
  const { send, isSending, error } = useSend();
  const shown = plan.data?.plan;
  const replay = async (): Promise<void> => {
    const version = shown?.relay?.version;
    // Sends the shown version of the relay. If the relay was saved meanwhile, the service rejects the replay and the plan loads again.
    const run = chosen.length === 0 ? {} : { run: [...chosen] };
    const body = version === undefined ? {} : { ...run, version };
    const sent = await send<{ event: Event }>({ method: "POST", path, body });
    if (sent !== null) return onReplayed(sent.answer.event);
    setChosen([]);
    plan.reload();
  };
  const isDone =
    shown !== undefined &&
    shown.actions.length > 0 &&
    shown.actions.every(({ index, will }) => DONE.has(will) && !chosen.includes(index));
  const choose = (index: number, isOn: boolean): void =>
    setChosen(isOn ? [...chosen, index].sort() : chosen.filter((one) => one !== index));
  return html`<${Dialog} title="Replay this event?" onClose=${onClose}>
    ${
      shown === undefined
        ? html`<${LoadingState} error=${plan.error} rows=${3} onRetry=${plan.reload} />`
        : shown.stop !== null
          ? html`<${Notice} kind="warn"><${Sentence} text=${shown.stop} /><//>`
          : html`<p>${isDone ? "All of its actions are done. A replay does nothing." : "The event runs again with the current definition of the relay and up to seven attempts:"}</p>
          <ul class="plan">${shown.actions.map(
            (action) =>
              html`<${Planned} key=${action.index} action=${action} isChosen=${chosen.includes(action.index)} onChoose=${choose} />`,
          )}</ul>
          <${StillSo} place=${place} id=${id} />
          ${shown.relay !== null && html`<${Brake} place=${place} relay=${shown.relay.name} />`}`
    }
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class=${isDone ? "" : "primary"} disabled=${isSending || shown === undefined} onClick=${replay}>
        ${isSending ? "Replaying…" : "Replay"}</button></div>
  <//>`;
}

/** Warns if the cause of the failure still exists, as the event's page does. */
function StillSo({ place, id }: { place: Place; id: string }): View {
  const cause = useLoad<{ cause: EventCauseView | null }>(apiPath(place, "events", id, "cause")).data?.cause;
  if (cause?.stands !== "yes") return null;
  return html`<${Notice} kind="warn">The cause still exists: <${Sentence} text=${cause.message} /> Fix it first, or the event fails again.<//>`;
}

function Brake({ place, relay: name }: { place: Place; relay: string }): View {
  const relay = useLoad<{ relay: Relay }>(apiPath(place, "relays", name)).data?.relay;
  if (relay?.state !== "paused") return null;
  return html`<${Notice} kind="info">The relay is paused. The event waits until you resume the relay.<//>`;
}

function Planned({
  action,
  isChosen,
  onChoose,
}: {
  action: PlannedAction;
  isChosen: boolean;
  onChoose: (index: number, isOn: boolean) => void;
}): View {
  const { index, will, mayChoose, message, nowFor } = action;
  const icon = isChosen ? "run" : will;
  return html`<li class="plan-${icon}"><${Icon} name=${ICONS[icon]} size=${14} /><span>
    <b>${formatAction(action.action)}</b><br /><${Sentence} text=${message} />
    ${
      mayChoose &&
      html`<label class="plan-choice"><input type="checkbox" checked=${isChosen} onChange=${(
        event: globalThis.Event,
      ) =>
        onChoose(
          index,
          (event.target as HTMLInputElement).checked,
        )} /> ${nowFor === undefined ? "Run it as well" : html`Run it for <${SafeText} text=${nowFor.name} limit=${100} />`}</label>`
    }</span></li>`;
}
