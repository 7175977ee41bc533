/** What is left to do while a relay is new; each step ticks itself. It goes once an event was done. */
import type { HealthView } from "../../src/overview/health.ts";
import type { Relay } from "../ground/answer.ts";
import { writeQuery } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { sayTimesIn, useNow } from "../ground/time-words.ts";
import { CopyButton } from "../part/copy-button.ts";
import { Icon } from "../part/icon.ts";

interface Step {
  title: string;
  done: boolean;
  /** How it is done, while it is not. */
  how: View;
}

const DAY_MS = 86_400_000;
const NEW_DAYS = 3;

/** Nothing of it was ever done, as far as its last days tell. */
export function isNewRelay({ createdAt, last24h }: Relay, { state }: HealthView, now: number): boolean {
  return state === "new" || (last24h.done === 0 && now - Date.parse(createdAt) < NEW_DAYS * DAY_MS);
}

export function RelayChecklist({
  place,
  relay,
  health,
}: {
  place: Place;
  relay: Relay;
  health: HealthView;
}): View {
  const now = useNow(60_000);
  const steps = relay.trigger === "receiver" ? stepsOfReceiver(place, relay, health) : stepsOf(relay, now);
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="block card checklist" aria-label="Set it up"><h2>Set it up</h2>
    <ol class="first-steps">${steps.map(
      ({ title, done, how }, at) =>
        html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="ears"> (done)</span>`}</h3>${!done && how}</div></li>`,
    )}</ol></section>`;
}

function stepsOfReceiver(place: Place, relay: Relay, health: HealthView): Step[] {
  const { name, secret, receiverUrl = "", lastEventAt, last24h } = relay;
  const hasEvent = lastEventAt !== null;
  const isCalled = hasEvent || health.state !== "new" || health.word !== "No calls yet";
  const own = pagePath(place, "relays", name);
  return [
    {
      title: "Copy the URL into the sender",
      done: isCalled,
      how: html`<p>The sender calls it exactly as it stands: <code class="wrap">${receiverUrl}</code></p>
        <${CopyButton} text=${receiverUrl} label="Copy the URL for the sender" />`,
    },
    {
      title: "Have both know the secret",
      done: secret.setAt !== null,
      how: html`<p>Without it every call is refused.</p><a class="button" href="${own}?tab=secrets">Store the sender’s secret</a>`,
    },
    {
      title: "The first call arrives",
      done: isCalled,
      how: html`<p>It appears here by itself, with the reason where it is refused.</p>
        <a class="button" href="${own}?tab=test">Try it without the sender</a>`,
    },
    {
      title: "The first event is done",
      done: last24h.done > 0,
      how: hasEvent
        ? html`<p>The newest is not done yet: its page says why.</p><a class="button" href=${pagePath(place, "events") + writeQuery({ relay: name })}>See its events</a>`
        : html`<p>A call that verifies and matches becomes an event, and its actions run.</p>`,
    },
  ];
}

function stepsOf({ trigger, nextTick, lastEventAt, last24h }: Relay, now: number): Step[] {
  const isSchedule = trigger === "schedule";
  return [
    {
      title: isSchedule ? "The first tick" : "A record changes",
      done: lastEventAt !== null,
      how: html`<p>${isSchedule ? sayTimesIn(nextTick?.message ?? "", now) : "A record of its collection that matches where becomes an event."}</p>`,
    },
    {
      title: "The first event is done",
      done: last24h.done > 0,
      how: html`<p>What each action did stands on the event’s page.</p>`,
    },
  ];
}
