/**
 * Checklist of a new relay, as `relay relays checklist` shows it, with the steps for mail and for production. The list disappears after the first
 * real event is done, and in development after the relay was promoted too.
 */
import type { ChecklistView } from "../../src/insight/overview/checklist.ts";
import type { HealthView } from "../../src/insight/overview/health.ts";
import type { MissingThing } from "../../src/rules/relay/relay-reference.ts";
import type { Page, Relay, RelayItem } from "../base/answer.ts";
import { writeQuery } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { DAY_MS, useNow } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { AskOwner } from "../component/ask-owner.ts";
import { CopyButton } from "../component/copy-button.ts";
import { CreateItem } from "../component/create-item.ts";
import { PasteSecretLink } from "../component/fix-link.ts";
import { Icon } from "../component/icon.ts";
import { Sentence } from "../component/sentence.ts";
import { useSettings } from "../settings/use-settings.ts";
import { TunnelHint } from "./relay-created.ts";

interface Step {
  title: string;
  done: boolean;
  /** Instruction, shown until the step is done. */
  how: View;
}

type ChecklistStep = ChecklistView["steps"][number];

const REFRESH_MS = 5_000;

const NEW_DAYS = 3;

interface Props {
  place: Place;
  relay: Relay;
  health: HealthView;
  /** Catalog items that its actions name and that do not exist. */
  missing: readonly MissingThing[];
}

export function RelayChecklist(props: Props): View {
  const { place, relay, health, missing } = props;
  const now = useNow(60_000);
  const mail = useMailStep(place, relay);
  const production = useProductionStep(place, relay);
  const path = `${apiPath(place, "relays", relay.name)}/checklist`;
  const isYoung = now - Date.parse(relay.createdAt) < NEW_DAYS * DAY_MS;
  const isNew = isYoung || health.state === "new" || relay.lastEventAt === null;
  const isNeeded = isNew || missing.length > 0;
  const { data } = useLoad<{ checklist: ChecklistView }>(isNeeded ? path : null, REFRESH_MS);
  const checklist = data?.checklist;
  const isToCarry = isYoung && place.environment === "development" && production.some(({ done }) => !done);
  if (checklist === undefined || (checklist.left === 0 && !isToCarry)) return null;
  const own = checklist.steps.map((step): Step => ({ ...step, how: howOf(step, props, checklist) }));
  const steps = [...mail, ...own, ...production];
  const next = steps.findIndex(({ done }) => !done);
  return html`<section class="block card checklist" aria-label="Set it up"><h2>Set it up</h2>
    <ol class="first-steps">${steps.map(
      ({ title, done, how }, at) =>
        html`<li key=${title} class=${done ? "first-step done" : at === next ? "first-step next" : "first-step"}>
        <span class="first-mark" aria-hidden="true">${done ? html`<${Icon} name="check" size=${14} />` : at + 1}</span>
        <div><h3>${title}${done && html`<span class="off-screen"> (done)</span>`}</h3>${!done && how}</div></li>`,
    )}</ol></section>`;
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
          ${!hasDomain && html`<a data-needs="edit_settings" class="button" href=${to("domain")}>${senderDomain === null ? "Set a sender domain" : "Verify the sender domain"}</a>`}
          ${mail.smtp === null && html`<a data-needs="edit_settings" class="button" href=${to("server")}>Set a mail server</a>`}<${AskOwner} needs="edit_settings" to="do this" /></div>`,
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
        ${last24h.done > 0 && html`<a class="button primary" data-needs="request_changes" href=${to}>Promote to production…</a>`}`,
    },
  ];
}

function howOf(step: ChecklistStep, props: Props, checklist: ChecklistView): View {
  if (step.step === "event_types")
    return html`<ul class="step-types">${checklist.eventTypes.map(
      ({ type, meaning }) =>
        html`<li key=${type}><code class="wrap">${type}</code>${meaning !== null && html`<p><${Sentence} text=${meaning} /></p>`}</li>`,
    )}</ul>`;
  const ways = waysOf(step, props, checklist);
  return html`<p><${Sentence} text=${step.todo ?? ""} /></p>${ways !== null && html`<div class="step-ways">${ways}</div>`}`;
}

/** Returns what helps with an open step: the value to copy, or the place where the user does it. */
function waysOf(
  { step }: ChecklistStep,
  { place, relay, health, missing }: Props,
  checklist: ChecklistView,
): View {
  const { name, secret, lastEventAt, definition } = relay;
  const own = pagePath(place, "relays", name);
  const ask = html`<${AskOwner} needs="edit_settings" to="do this" />`;
  switch (step) {
    case "catalog":
      return html`<${AskOwner} needs="edit_definitions" to="do this" />${missing.map((thing) => html`<${CreateItem} key="${thing.kind} ${thing.name}" place=${place} thing=${thing} relay=${name} back="relay" changed=${health.change != null} />`)}`;
    case "url":
      return html`<${TunnelHint} place=${place} />
        <${CopyButton} text=${checklist.receiverUrl ?? ""} label="Copy the URL for the sender" />`;
    case "secret":
      if (secret.kind === "processor")
        return html`<a data-needs="edit_settings" class="button" href=${pagePath(place, "settings")}>Set the processor secret</a>${ask}`;
      return secret.kind === "minted" && secret.issuedBy === undefined
        ? html`<a data-needs="edit_settings" class="button" href=${own + writeQuery({ tab: "secrets", change: "rotate" })}>Rotate or paste…</a>${ask}`
        : html`<${PasteSecretLink} place=${place} relay=${name} />${ask}`;
    case "verified": {
      const isRequested = checklist.steps.some((one) => one.step === "url" && one.done);
      return html`<a class="button" href="${own}?tab=test">${place.environment === "production" ? "Preview a request" : "Test without the sender"}</a>
        ${isRequested && html`<a class="button" href=${pagePath(place, "requests") + writeQuery({ relay: name, outcome: "refused" })}>Show rejected requests</a>`}`;
    }
    case "occurred":
      if (definition.trigger.kind !== "data_change") return null;
      return html`<a class="button" href=${pagePath(place, "records", definition.trigger.collection)}>Records of ${definition.trigger.collection}</a>`;
    case "done":
      if (lastEventAt === null) return null;
      return html`<a class="button" href=${pagePath(place, "events") + writeQuery({ relay: name })}>Show events</a>`;
    default:
      return null;
  }
}
