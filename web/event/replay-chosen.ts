/**
 * Dialog that replays the selected events one after another, after showing the plan of each. It leaves out events that
 * must not run and says why. A single event gets the full dialog.
 */
import { useEffect, useState } from "preact/hooks";
import type { ReplayPlan } from "../../src/engine/event/replay-plan.ts";
import type { Event } from "../base/answer.ts";
import { call, sentenceOf } from "../base/api.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate, put } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice, Skeleton } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { notifyDone } from "../component/toast.ts";
import { formatActionType } from "../relay/relay-words.ts";
import { MoveChoice, StillSo } from "./bulk-replay.ts";
import { EventReplay } from "./event-replay.ts";

interface Props {
  place: Place;
  ids: readonly string[];
  onClose: () => void;
}

export function ReplayChosen({ place, ids, onClose }: Props): View {
  const [single] = ids;
  if (ids.length !== 1 || single === undefined)
    return html`<${Several} place=${place} ids=${ids} onClose=${onClose} />`;
  const done = (event: Event): void => {
    put(apiPath(place, "events", single), { event });
    invalidate(apiPath(place, "events"));
    notifyDone("Queued for replay. The result appears on its page.");
    onClose();
  };
  return html`<${EventReplay} place=${place} id=${single} onClose=${onClose} onReplayed=${done} />`;
}

interface Planned {
  id: string;
  plan: ReplayPlan;
}

function Several({ place, ids, onClose }: Props): View {
  const { plans, refusals: unplanned } = usePlans(place, ids);
  const [done, setDone] = useState<number | null>(null);
  const [refusals, setRefusals] = useState<readonly string[]>([]);
  const [isOver, setOver] = useState(false);
  const [move, setMove] = useState(false);
  const able = plans.filter(({ plan }) => plan.stop === null);
  const others = able.filter(({ plan }) => listOther(plan).length > 0).length;
  const isReading = plans.length + unplanned.length < ids.length;
  const left = [...unplanned, ...plans.flatMap(({ plan }) => (plan.stop === null ? [] : [plan.stop]))];
  const begin = async (): Promise<void> => {
    setDone(0);
    for (const { id, plan } of able) {
      const run = move ? listOther(plan) : [];
      const body = plan.relay === null ? {} : { version: plan.relay.version, run };
      try {
        await call("POST", apiPath(place, "events", id, "replay"), body);
      } catch (thrown) {
        setRefusals((before) => [...before, sentenceOf(thrown)]);
      }
      setDone((before) => (before ?? 0) + 1);
    }
    invalidate(apiPath(place, "events"));
    setOver(true);
  };
  return html`<${Dialog} title="Replay ${formatCount(ids.length, "event")}?" onClose=${onClose}>
    ${
      isReading
        ? html`<p class="quiet" role="status">Checking each event: ${formatNumber(plans.length + unplanned.length)} of ${formatNumber(ids.length)}…</p><${Skeleton} rows=${2} />`
        : html`<p>${formatCount(able.length, "event")} ${able.length === 1 ? "runs" : "run"} again with ${able.length === 1 ? "its relay’s" : "their relays’"} current definition. Actions that are done do not run twice.</p>
          <ul class="plan">${tally(able).map(
            ([what, count]) => html`<li key=${what}><span><b>${what}</b> ${formatNumber(count)}</span></li>`,
          )}</ul>
          ${others > 0 && html`<${MoveChoice} events=${others} isOn=${move} onChange=${setMove} />`}
          <${StillSo} place=${place} relays=${[...new Set(able.flatMap(({ plan }) => plan.relay?.name ?? []))]} />`
    }
    ${left.length > 0 && html`<${Notice} kind="warn">${formatCount(left.length, "event")} cannot run: <${Reasons} sentences=${left} /><//>`}
    ${
      done !== null &&
      html`<progress max=${Math.max(1, able.length)} value=${done} aria-label="Events replayed"></progress>
      <p role="status">${formatNumber(done - refusals.length)} of ${formatNumber(able.length)} queued.</p>`
    }
    ${refusals.length > 0 && html`<${Notice} kind="bad"><${Reasons} sentences=${refusals} /><//>`}
    <div class="dialog-actions"><button type="button" class=${isOver ? "primary" : ""} onClick=${onClose}>${isOver ? "Close" : done === null ? "Cancel" : "Close and continue in the background"}</button>
      ${
        !isOver &&
        html`<button type="button" class="primary" disabled=${isReading || able.length === 0 || done !== null} onClick=${() => void begin()}>
        ${done === null ? `Replay ${formatCount(able.length, "event")}` : "Replaying…"}</button>`
      }</div>
  <//>`;
}

/** Lists the actions whose work was done for another person than the event's current one. */
function listOther({ actions }: ReplayPlan): number[] {
  return actions.flatMap(({ index, will }) => (will === "other_person" ? [index] : []));
}

/** Shows each distinct sentence once. */
function Reasons({ sentences }: { sentences: readonly string[] }): View {
  return html`<ul>${[...new Set(sentences)].slice(0, 5).map((text) => html`<li key=${text}><${Sentence} text=${text} /></li>`)}</ul>`;
}

const WILL_WORDS = {
  run: "runs",
  again: "is sent again",
  skip: "is skipped: already done",
  edited: "is skipped: edited after it was done",
  other_person: "was done for another person",
  settle: "is checked first",
} as const;

function tally(planned: readonly Planned[]): [what: string, count: number][] {
  const counts = new Map<string, number>();
  for (const { plan } of planned)
    for (const { type, will } of plan.actions) {
      const what = `${formatActionType(type)} ${WILL_WORDS[will]}:`;
      counts.set(what, (counts.get(what) ?? 0) + 1);
    }
  return [...counts].sort(([, one], [, other]) => other - one);
}

/** Loads the replay plan of each event, one after another. */
function usePlans(place: Place, ids: readonly string[]): { plans: Planned[]; refusals: string[] } {
  const [read, setRead] = useState<{ plans: Planned[]; refusals: string[] }>({ plans: [], refusals: [] });
  useEffect(() => {
    const own = new AbortController();
    void (async () => {
      for (const id of ids) {
        try {
          const { plan } = await call<{ plan: ReplayPlan }>(
            "GET",
            apiPath(place, "events", id, "replay"),
            undefined,
            own.signal,
          );
          setRead((before) => ({ ...before, plans: [...before.plans, { id, plan }] }));
        } catch (thrown) {
          if (own.signal.aborted) return;
          setRead((before) => ({ ...before, refusals: [...before.refusals, sentenceOf(thrown)] }));
        }
      }
    })();
    return () => own.abort();
  }, []);
  return read;
}
