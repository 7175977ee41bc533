/**
 * Checklist of a new relay: what is left to do and where. Each step is marked as done when the service sees its result.
 * The list disappears after the first done event, and in development after the relay was promoted too.
 */
import type { ChecklistView } from "../../src/insight/overview/checklist.ts";
import type { FunnelView } from "../../src/insight/overview/funnel.ts";
import type { HealthView } from "../../src/insight/overview/health.ts";
import type { MissingThing } from "../../src/rules/relay/relay-reference.ts";
import type { EventItem, Page, Relay, RelayItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { DAY_MS, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { MakeThing } from "../component/create-item.ts";
import { Icon } from "../component/icon.ts";
import { Sentence } from "../component/sentence.ts";
import { useSettings } from "../settings/use-settings.ts";
import { useFunnel } from "./relay-funnel.ts";

interface Step {
  title: string;
  done: boolean;
  /** Instruction, shown until the step is done. */
  how: View;
}

type Stop = FunnelView["boxes"][number]["stops"][number];

const NEW_DAYS = 3;
const REFRESH_MS = 5_000;

interface Props {
  place: Place;
  relay: Relay;
  health: HealthView;
  /** Catalog items that its actions name and that do not exist. */
  missing: readonly MissingThing[];
}

export function RelayChecklist({ place, relay, health, missing }: Props): View {
  const now = useNow(60_000);
  const mail = useMailStep(place, relay);
  const production = useProductionStep(place, relay);
  const refused = useRefused(place, relay);
  // A relay without any done event counts as new.
  const isYoung = now - Date.parse(relay.createdAt) < NEW_DAYS * DAY_MS;
  const isIdle = relay.last24h.done === 0 && isYoung;
  const done = apiPath(place, "events") + writeQuery({ relay: relay.name, state: "done", limit: 1 });
  const before = useLoad<Page<EventItem>>(isIdle && relay.lastEventAt !== null ? done : null).data?.items;
  const isNew = health.state === "new" || (isIdle && (relay.lastEventAt === null || before?.length === 0));
  const isToCarry = isYoung && place.environment === "development" && production.some(({ done }) => !done);
  const isShown = isNew || isToCarry || missing.length > 0;
  const isReceiver = relay.trigger === "receiver";
  const isVerified = useVerified(
    isShown && isReceiver ? apiPath(place, "relays", relay.name, "checklist") : null,
  );
  if (!isShown) return null;
  const own = isReceiver
    ? stepsOfReceiver(place, relay, health, secretStep(place, relay, isVerified, refused))
    : stepsOf(place, relay);
  const steps = [...stepsOfMissing(place, relay, missing), ...mail, ...own, ...production];
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="block card checklist" aria-label="Set it up"><h2>Set it up</h2>
    <ol class="first-steps">${steps.map(
      ({ title, done, how }, at) =>
        html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="off-screen"> (done)</span>`}</h3>${!done && how}</div></li>`,
    )}</ol></section>`;
}

/** Returns one step for all catalog items that the actions name, if they name any. */
function stepsOfMissing(place: Place, { name, definition }: Relay, missing: readonly MissingThing[]): Step[] {
  const names = definition.actions.some((action) =>
    ["collection", "product", "plan", "entitlement"].some((field) => field in action),
  );
  if (!names) return [];
  return [
    {
      title: "Create what it needs",
      done: missing.length === 0,
      how: html`<p>Without ${missing.length === 1 ? "it" : "these"} its events fail.</p>
        <div class="step-ways">${missing.map((thing) => html`<${MakeThing} key="${thing.kind} ${thing.name}" place=${place} thing=${thing} relay=${name} back="relay" />`)}</div>`,
    },
  ];
}

/** Returns the step that prepares outgoing mail, if the relay sends mail and this service delivers it. */
function useMailStep(place: Place, { definition }: Relay): Step[] {
  const { settings } = useSettings(place);
  const mails = definition.actions.some(({ type }) => type === "email_person");
  if (!mails || place.environment === "local" || settings === undefined) return [];
  const { mail, senderDomain } = settings;
  const to = (tab: string): string => pagePath(place, "mail") + writeQuery({ tab });
  const hasDomain = senderDomain?.verified === true;
  return [
    {
      title: "Set up mail",
      done: hasDomain && mail.smtp !== null,
      how: html`<p>Mail needs your own domain and a mail server. Until then the mail fails, and Relay retries it.</p>
        <div class="step-ways">
          ${!hasDomain && html`<a class="button" href=${to("domain")}>${senderDomain === null ? "Set a sender domain" : "Verify the sender domain"}</a>`}
          ${mail.smtp === null && html`<a class="button" href=${to("server")}>Set a mail server</a>`}</div>`,
    },
  ];
}

/** Returns the step that moves the relay to the next environment. */
function useProductionStep(place: Place, { name, last24h }: Relay): Step[] {
  const isTried = place.environment === "development";
  const live: Place = isTried ? { app: place.app, environment: "production" } : place;
  const { data } = useLoad<Page<RelayItem>>(`${apiPath(live, "relays")}?limit=200`);
  if (place.environment === "local")
    return [
      {
        title: "Deploy it to a server",
        done: false,
        how: html`<p><code>relay login</code> signs you in to a server, and <code>relay sync</code> uploads the files of <code>service/</code> to its development environment.</p>`,
      },
    ];
  if (!isTried || data === undefined) return [];
  const to = pagePath(place, "relays", "to", "production");
  return [
    {
      title: "Promote it to production",
      done: data.items.some((one) => one.name === name),
      how: html`<p>Relay first shows what would change, and changes nothing before you approve.</p>
        ${last24h.done > 0 && html`<a class="button primary" href=${to}>Promote to production…</a>`}`,
    },
  ];
}

/** Returns the cause of the last 24 hours' rejections if no request verified and no event ever arrived. null otherwise. */
function useRefused(place: Place, { name, lastEventAt }: Relay): Stop | null {
  const { data } = useFunnel(place, name);
  const verified = data?.funnel.boxes.find(({ step }) => step === "verified");
  if (lastEventAt !== null || verified === undefined || verified.passed > 0) return null;
  return verified.stops[0] ?? null;
}

/** Reports whether a request of the relay ever verified. */
function useVerified(path: string | null): boolean {
  const { data } = useLoad<{ checklist: ChecklistView }>(path, REFRESH_MS);
  return data?.checklist.steps.some(({ step, done }) => step === "verified" && done) ?? false;
}

/** Returns the step of the secret. Only a verified request shows that both sides have the same one. */
function secretStep(place: Place, { name, secret }: Relay, isVerified: boolean, refused: Stop | null): Step {
  const isLocal = place.environment === "local";
  const isOwn = secret.kind === "minted" && (secret.issuedBy === undefined || isLocal);
  const tab = `${pagePath(place, "relays", name)}?tab=secrets`;
  const settings = pagePath(place, "settings");
  const step = {
    title: isOwn ? "Paste Relay’s secret at the sender" : "Store the sender’s secret",
    done: isVerified,
  };
  if (refused !== null && secret.setAt !== null)
    return {
      ...step,
      how: html`<p>Relay has verified no request yet: <${Sentence} text=${refused.message} />.</p>
        <a class="button" href=${secret.kind === "processor" ? settings : tab}>Paste its secret…</a>
        <a class="button" href=${pagePath(place, "requests") + writeQuery({ relay: name, outcome: "refused" })}>Show rejected requests</a>`,
    };
  if (isOwn)
    return {
      ...step,
      how: html`<p>Relay showed the secret when it created the relay. This step is done when a request verifies. If you lost the secret, rotate it.</p>
        <a class="button" href=${tab}>Open the secrets</a>`,
    };
  if (secret.setAt !== null)
    return { ...step, how: html`<p>The secret is stored. This step is done when a request verifies.</p>` };
  return {
    ...step,
    how:
      secret.kind === "processor"
        ? html`<p>The processor shows the secret in its webhook settings${isLocal ? "; for a local test, use any long text" : ""}. Without it Relay rejects every request.</p><a class="button" href=${settings}>Set the processor secret</a>`
        : html`<p>Without it Relay rejects every request.</p><a class="button" href=${tab}>Store the sender’s secret</a>`,
  };
}

function stepsOfReceiver(place: Place, relay: Relay, health: HealthView, secret: Step): Step[] {
  const { name, receiverUrl = "", lastEventAt, last24h } = relay;
  const hasEvent = lastEventAt !== null;
  const isCalled = hasEvent || health.state !== "new" || health.word !== "No requests yet";
  const own = pagePath(place, "relays", name);
  const isLocal = place.environment === "local";
  return [
    {
      title: "Give the URL to the sender",
      done: isCalled,
      how: html`<p>The sender must use exactly this URL: <code class="wrap">${receiverUrl}</code></p>
        ${isLocal && html`<p>A sender on the internet cannot reach this machine. Open a tunnel and set its address with <code>--base-url</code>, or test without the sender first.</p>`}
        <${CopyButton} text=${receiverUrl} label="Copy the URL for the sender" />`,
    },
    secret,
    {
      title: "The first request arrives",
      done: isCalled,
      how: html`<p>The request appears here at once, with the cause if Relay rejects it.</p>
        <a class="button" href="${own}?tab=test">${place.environment === "production" ? "Preview a request" : "Test without the sender"}</a>`,
    },
    {
      title: "The first event is Done",
      done: last24h.done > 0,
      how: hasEvent
        ? html`<p>The newest event is not Done yet. Its page shows the cause.</p><a class="button" href=${pagePath(place, "events") + writeQuery({ relay: name })}>Show events</a>`
        : html`<p>A verified request that matches becomes an event, and its actions run.</p>`,
    },
  ];
}

function stepsOf(place: Place, { trigger, definition, nextTick, lastEventAt, last24h }: Relay): Step[] {
  const isSchedule = trigger === "schedule";
  const collection = definition.trigger.kind === "data_change" ? definition.trigger.collection : "";
  return [
    {
      title: isSchedule ? "The first tick" : "A record changes",
      done: lastEventAt !== null,
      how: isSchedule
        ? html`<p><${Sentence} text=${nextTick?.message ?? ""} /></p>`
        : html`<p>A matching record that your app, the dashboard or a receipt writes starts an event. Records that relays write start no event.</p>
          <a class="button" href=${pagePath(place, "records", collection)}>Records of ${collection}</a>`,
    },
    {
      title: "The first event is Done",
      done: last24h.done > 0,
      how: html`<p>The event’s page shows the result of each action.</p>`,
    },
  ];
}
