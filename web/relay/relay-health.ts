/** Health of a relay: a mark, and for a problem its reason and its fixes. */
import { useState } from "preact/hooks";
import type { BulkFilter } from "../../src/engine/event/bulk-choice.ts";
import type { EventCounts } from "../../src/engine/event/count.ts";
import type { HealthView } from "../../src/insight/overview/health.ts";
import { writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { AskOwnerLine, permissionToFix } from "../component/ask-owner.ts";
import { CreateItem } from "../component/create-item.ts";
import { Explanation, SAID_STANDS } from "../component/explanation.ts";
import { FixWay, PasteSecretLink } from "../component/fix-link.ts";
import { Icon } from "../component/icon.ts";
import { UndoChange } from "../component/recent-change.ts";
import { CommandLine, Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { BulkReplay } from "../event/bulk-replay.ts";

const COUNT_MS = 5_000;

/** The states with the mark and the name of each, worst first. */
export const HEALTH_DISPLAY: Readonly<Record<HealthView["state"], { mark: string; name: string }>> = {
  refusing: { mark: "refused", name: "Rejecting requests" },
  failing: { mark: "dead", name: "Failing" },
  nobody: { mark: "failed", name: "Finds no person" },
  ignoring: { mark: "failed", name: "Ignoring requests" },
  broken: { mark: "failed", name: "Invalid" },
  capped: { mark: "failed", name: "Over its limit" },
  silent: { mark: "failed", name: "Silent" },
  attention: { mark: "failed", name: "Needs attention" },
  held: { mark: "paused", name: "On hold" },
  paused: { mark: "paused", name: "Paused" },
  new: { mark: "skipped", name: "Nothing yet" },
  ok: { mark: "ok", name: "OK" },
};

/** Sorts the worst state first. */
export function compareHealth(one: HealthView, other: HealthView): number {
  const states = Object.keys(HEALTH_DISPLAY);
  return states.indexOf(one.state) - states.indexOf(other.state);
}

export function HealthMark({ health: { state, word } }: { health: HealthView }): View {
  return html`<${StateMark} state=${HEALTH_DISPLAY[state]?.mark} word=${word} />`;
}

function isTrouble({ state }: HealthView): boolean {
  return ["dead", "refused", "failed"].includes(HEALTH_DISPLAY[state]?.mark ?? "");
}

/** Shows the reason of a problem, and nothing if the relay is healthy. */
export function HealthReason({
  place,
  name,
  health,
}: {
  place: Place;
  name: string;
  health: HealthView;
}): View {
  const [chosen, setChosen] = useState<BulkFilter | null>(null);
  const { state, message, newest, cause, change = null } = health;
  const isWaiting =
    state === "paused" || state === "held" || (state === "failing" && health.code !== "relay_failed");
  const isOver = cause?.stands === "no";
  if (state === "ok" || state === "new") return null;
  const close = (): void => {
    setChosen(null);
    invalidate(apiPath(place, "relays"));
  };
  return html`<section class="health ${isTrouble(health) ? "health-bad" : ""}" aria-label="Health">
    <p><b><${HealthMark} health=${health} /></b> <${Sentence} text=${message} /></p>
    ${cause !== null && html`<p><b>${SAID_STANDS[cause.stands]}.</b> <${Sentence} text=${cause.message} /></p>`}
    <${Explanation} change=${change} todo=${health.todo} next=${health.next} />
    <${AskOwnerLine} needs=${permissionToFix(state === "held" ? "environment_held" : health.code, isOver)} />
    <div class="health-ways">
      ${change !== null && html`<${UndoChange} place=${place} change=${change} relay=${name} back="relay" />`}
      ${cause !== null && cause.missing !== null && html`<${CreateItem} place=${place} thing=${cause.missing} relay=${name} back="relay" changed=${change !== null} />`}
      ${newest !== null && !isOver && html`<${FixWay} place=${place} code=${newest.reason} status=${newest.status} person=${newest.person} relay=${name} />`}
      ${
        health.code === "relay_failed" &&
        html`<button data-needs="replay" type="button" class=${isOver && newest?.reason !== "missed" ? "primary" : ""} onClick=${() => setChosen({ state: "dead", relay: name })}><${Icon} name="replay" size=${14} />Replay its dead events…</button>`
      }
      ${newest !== null && html`<a class="button" href=${pagePath(place, "events", newest.event)}>Open the newest</a>`}
      ${wayOf(place, name, health)}
      ${isWaiting && html`<${Waiting} place=${place} relay=${name} reason=${state === "failing" ? "any" : undefined} />`}
      ${state === "refusing" && html`<${PasteSecretLink} place=${place} relay=${name} />`}
      ${(state === "ignoring" || (state === "nobody" && newest === null) || state === "broken") && html`<a data-needs="edit_definitions" class="button" href="${pagePath(place, "relays", name)}?tab=definition">Edit the definition…</a>`}
      ${state === "held" && html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "settings")}>Release the hold…</a>`}
      <${CommandLine} texts=${[change?.todo ?? null, message, health.todo]} />
    </div>
    ${chosen !== null && html`<${BulkReplay} place=${place} filter=${chosen} onClose=${close} />`}
  </section>`;
}

/** Links the list of affected events or requests. */
function wayOf(place: Place, relay: string, { state, code }: HealthView): View {
  const events = (of: string): string => pagePath(place, "events") + writeQuery({ relay, state: of });
  const calls = (outcome: string): string => pagePath(place, "requests") + writeQuery({ relay, outcome });
  const ways: Partial<Record<HealthView["state"], [href: string, words: string]>> = {
    refusing: [calls("refused"), "Show rejected requests"],
    ignoring: [calls("ignored"), "Show ignored requests"],
    capped: [calls("refused"), "Show rejected requests"],
    nobody: [events("failed"), "Show failed events"],
    ...(code === "relay_failed" ? { failing: [events("dead"), "Show all"] } : {}),
  };
  const missing = `${pagePath(place, "relays", relay)}?tab=missing`;
  const way = code === "requests_rejected" ? ([missing, "Show the missing events"] as const) : ways[state];
  return way === undefined ? null : html`<a class="button" href=${way[0]}>${way[1]}</a>`;
}

/** Links the waiting events with their number. Shows nothing without any, which is common for a schedule, whose ticks are not recorded meanwhile. */
function Waiting({ place, relay, reason }: { place: Place; relay: string; reason?: string }): View {
  const path = apiPath(place, "events", "counts") + writeQuery({ relay, reason });
  const queued = useLoad<{ counts: EventCounts }>(path, COUNT_MS).data?.counts.queued;
  if (queued === undefined || (queued.count === 0 && !queued.isMore)) return null;
  const to = pagePath(place, "events") + writeQuery({ relay, state: "queued", reason });
  return html`<a class="button" href=${to}>Show waiting events (${formatNumber(queued.count)}${queued.isMore && "+"})</a>`;
}
