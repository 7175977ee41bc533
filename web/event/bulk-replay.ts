/**
 * Dialog that replays every event of a filter. First it shows the plan: how many events match, of which relays, what
 * happens to their actions, and which events must not act again. The server makes the plan and does the work.
 */
import { useEffect, useState } from "preact/hooks";
import { formatSpan } from "../../src/base/shared/time-span.ts";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { BulkPlan } from "../../src/engine/event/bulk-plan.ts";
import type { BulkReplayView } from "../../src/engine/event/bulk-replay.ts";
import type { OverviewView } from "../../src/insight/overview/overview.ts";
import { call, sentenceOf } from "../base/api.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { put } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { ErrorState, Notice, Skeleton, StaleNotice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";
import { formatActionType } from "../relay/relay-words.ts";
import {
  BulkProgress,
  Chosen,
  countLeftOut,
  isPending,
  isRunning,
  LeftOut,
  useBulkReplays,
} from "./bulk-progress.ts";

const DEFAULT_PER_SECOND = 50;
const MAX_PER_SECOND = 1_000;
const REFRESH_MS = 1_000;
const SHOWN_RELAYS = 8;

/** Outcomes of an action for several events. */
const WILL = {
  run: ["play", "run"],
  again: ["replay", "are sent again with the same id"],
  skip: ["skip", "are skipped: already done"],
  edited: ["skip", "are skipped: edited after they were done"],
  other_person: ["skip", "were done for another person"],
  settle: ["clock", "have an unknown result: Relay checks it first"],
} as const;

interface Props {
  place: Place;
  /** Chosen events. A time in the filter must not change while the dialog is open. */
  filter: BulkFilter;
  onClose: () => void;
}

export function BulkReplay({ place, filter, onClose }: Props): View {
  const [begun, setBegun] = useState<string | null>(null);
  const title = `Replay ${filter.state} events${place.environment === "production" ? " in production" : ""}?`;
  return begun === null
    ? html`<${Dialog} title=${title} onClose=${onClose}>
        <${Ask} place=${place} filter=${filter} onClose=${onClose} onBegun=${setBegun} /><//>`
    : html`<${Dialog} title="Replaying ${filter.state} events" onClose=${onClose}>
        <${Follow} place=${place} id=${begun} onClose=${onClose} /><//>`;
}

function Ask({ place, filter, onClose, onBegun }: Props & { onBegun: (id: string) => void }): View {
  const { plan, error, ask } = usePlan(place, filter);
  const [pace, setPace] = useState(String(DEFAULT_PER_SECOND));
  const [move, setMove] = useState(filter.state === "done");
  const { send, isSending, error: refused } = useSend();
  const other = useBulkReplays(place).find(isRunning);
  const perSecond = /^\d{1,4}$/.test(pace) ? Number(pace) : 0;
  const isPace = perSecond >= 1 && perSecond <= MAX_PER_SECOND;
  const count = plan === null ? 0 : plan.matched - countLeftOut(plan.leftOut);
  const isMore = plan?.isMore === true;
  const begin = async (): Promise<void> => {
    const sent = await send<{ replay: BulkReplayView }>({
      method: "POST",
      path: apiPath(place, "bulk-replays"),
      body: { ...filter, perSecond, move },
      changes: [apiPath(place, "bulk-replays"), apiPath(place, "events"), apiPath(place, "relays")],
    });
    if (sent === null) return;
    const { replay } = sent.answer;
    put(apiPath(place, "bulk-replays", replay.id), { replay });
    onBegun(replay.id);
  };
  return html`
    ${other !== undefined && html`<${Notice} kind="info">Another bulk replay runs in this environment. Wait until it ends, or stop it.<//><${BulkProgress} place=${place} replay=${other} />`}
    ${
      plan === null
        ? error === null
          ? html`<p class="quiet" role="status">Checking the events…</p><${Skeleton} rows=${3} />`
          : html`<${ErrorState} error=${error} onRetry=${ask} />`
        : html`<${Plan} plan=${plan} filter=${filter} />`
    }
    ${
      plan !== null &&
      count > 0 &&
      filter.state === "dead" &&
      html`<${StillSo} place=${place} relays=${plan.relays.map(({ relay }) => relay)} />`
    }
    ${
      plan !== null &&
      plan.otherPerson > 0 &&
      filter.state !== "done" &&
      html`<${MoveChoice} events=${plan.otherPerson} isOn=${move} onChange=${setMove} />`
    }
    ${
      (count > 0 || isMore) &&
      html`<label class="field bulk-pace"><span>Maximum events per second</span>
        <input type="number" inputmode="numeric" min="1" max=${MAX_PER_SECOND} value=${pace} aria-invalid=${!isPace}
          onInput=${(event: InputEvent) => setPace((event.target as HTMLInputElement).value)} />
        <small>${isPace ? `It takes ${isMore ? "at least" : "about"} ${formatSpan((count / perSecond) * 1_000)}; outgoing calls and mails are sent at this rate.` : `Write a number from 1 to ${formatNumber(MAX_PER_SECOND)}.`}</small></label>`
    }
    ${refused !== null && html`<${Notice} kind="bad"><${Sentence} text=${refused} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending || (count === 0 && !isMore) || !isPace || other !== undefined} onClick=${() => void begin()}>
        ${isSending ? "Starting…" : count === 0 ? "Replay" : isMore ? `Replay ${formatNumber(count)}+ events` : `Replay ${formatCount(count, "event")}`}</button></div>`;
}

/** Offers to run all events whose work was done for another person than their current one. */
export function MoveChoice({
  events,
  isOn,
  onChange,
}: {
  events: number;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}): View {
  return html`<label class="plan-choice"><input type="checkbox" checked=${isOn} onChange=${(
    event: globalThis.Event,
  ) =>
    onChange(
      (event.target as HTMLInputElement).checked,
    )} /> Run ${formatCount(events, "event")} for the new person as well, and move the purchases</label>`;
}

/** Shows the causes of the relays' dead events that still exist, because a replay would fail the same way. */
export function StillSo({ place, relays }: { place: Place; relays: readonly string[] }): View {
  const { data } = useLoad<OverviewView>(apiPath(place, "overview"));
  const standing = (data?.needs ?? []).filter(
    ({ dead, relay: name }) => dead?.cause.stands === "yes" && relays.some((relay) => relay === name),
  );
  if (standing.length === 0) return null;
  return html`<${Notice} kind="warn">The newest event is dead because of a problem that still exists: ${standing
    .slice(0, SHOWN_RELAYS)
    .map(
      ({ relay, dead }) =>
        html`${relays.length > 1 && html`<b>${relay}</b>: `}<${Sentence} text=${dead?.cause.message ?? ""} /> `,
    )}Fix it first, or the events fail again.<//>`;
}

function Plan({ plan, filter }: { plan: BulkPlan; filter: BulkFilter }): View {
  const { matched, isMore, planned, relays, actions, leftOut } = plan;
  if (matched === 0 && !isMore) return html`<p>No event matches now: <${Chosen} filter=${filter} />.</p>`;
  const more = relays.length - SHOWN_RELAYS;
  return html`<p><b>${formatNumber(matched)}${isMore && "+"}</b> ${matched === 1 && !isMore ? "matches" : "match"}: <${Chosen} filter=${filter} />.${
    filter.state === "done"
      ? " Only events whose actions ran for another person run again. The actions run for the new person, and purchases move."
      : " Each event runs again with the current definition of its relay, oldest first. Actions that are done do not run twice."
  }</p>
    ${planned < matched && html`<p class="quiet">The oldest ${formatNumber(planned)} were checked one by one. This is the result:</p>`}
    ${
      filter.relay === undefined &&
      relays.length > 0 &&
      html`<ul class="bulk-relays">${relays
        .slice(0, SHOWN_RELAYS)
        .map(
          ({ relay, events }) =>
            html`<li key=${relay}><b>${relay}</b> <span class="quiet">${formatNumber(events)}</span></li>`,
        )}
        ${more > 0 && html`<li class="quiet">and ${formatCount(more, "relay")} more</li>`}</ul>`
    }
    <ul class="plan">${actions.map(({ type, will, events }) => {
      const [icon, words] = WILL[will];
      return html`<li key="${type} ${will}" class="plan-${will}"><${Icon} name=${icon} size=${14} /><span>
        <b>${formatActionType(type)}</b><br />${formatNumber(events)} ${words}</span></li>`;
    })}</ul>
    ${countLeftOut(leftOut) > 0 && html`<${Notice} kind="warn"><${LeftOut} leftOut=${leftOut} /><//>`}`;
}

function Follow({ place, id, onClose }: { place: Place; id: string; onClose: () => void }): View {
  const { data, error } = useLoad<{ replay: BulkReplayView }>(apiPath(place, "bulk-replays", id), (loaded) =>
    loaded === undefined || isPending(loaded.replay) ? REFRESH_MS : null,
  );
  return html`${error !== null && html`<${StaleNotice} error=${error} />`}
    ${data === undefined ? html`<${Skeleton} rows=${2} />` : html`<${BulkProgress} place=${place} replay=${data.replay} onLeave=${onClose} />`}
    <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>Close</button></div>`;
}

/** Loads the plan once. */
function usePlan(
  place: Place,
  filter: BulkFilter,
): { plan: BulkPlan | null; error: string | null; ask: () => void } {
  const [plan, setPlan] = useState<BulkPlan | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    const own = new AbortController();
    setError(null);
    call<{ plan: BulkPlan }>("POST", apiPath(place, "bulk-replays", "plan"), filter, own.signal).then(
      (answer) => setPlan(answer.plan),
      (thrown: unknown) => {
        if (!own.signal.aborted) setError(sentenceOf(thrown));
      },
    );
    return () => own.abort();
  }, [asked]);
  return { plan, error, ask: () => setAsked(asked + 1) };
}
