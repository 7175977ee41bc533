/** Access of a person: one line for each entitlement, with all of its grants. Each grant can be revoked. */
import { useState } from "preact/hooks";
import type { PersonNow } from "../../src/interfaces/api/person.ts";
import { formatCount, formatNumber } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { EndDialog } from "../component/end-dialog.ts";
import { Icon } from "../component/icon.ts";
import { SafeText } from "../component/safe-text.ts";
import { StateMark } from "../component/state-mark.ts";
import { Ago } from "../component/time.ts";
import { SourceLink } from "./source-link.ts";

const SHOWN = 6;

type Grant = PersonNow["access"]["grants"][number];

interface Held {
  entitlement: string;
  /** The grants, newest first, as in the API. */
  grants: Grant[];
  /** Latest end of the grants; null: one of them never expires. */
  until: string | null;
}

export function AccessCard({ place, now }: { place: Place; now: PersonNow }): View {
  const { granted, until, grants, suspended } = now.access;
  const [ending, setEnding] = useState<Grant | null>(null);
  const [all, setAll] = useState(false);
  const held = gather(grants);
  const shown = all ? held : held.slice(0, SHOWN);
  return html`<div class="card access-card"><div class="has-head"><h2>Access</h2>${
    granted
      ? html`<${StateMark} state="done" word="Has access" /><span class="quiet">${until === null ? "never expires" : html`ends <${Ago} at=${until} />`}</span>`
      : html`<span class="quiet">${suspended ? "None while suspended" : "None"}</span>`
  }</div>
    ${shown.length > 0 && html`<ul class="access-list">${shown.map((one) => html`<${HeldLine} key=${one.entitlement} place=${place} held=${one} onRevoke=${setEnding} />`)}</ul>`}
    ${held.length > shown.length && html`<button type="button" class="link" onClick=${() => setAll(true)}>Show all ${formatNumber(held.length)}</button>`}
    ${
      ending !== null &&
      html`<${EndDialog} title="Revoke ${ending.entitlement}?" method="DELETE" path=${apiPath(place, "grants", ending.id)}
        words=${formatRevoke(grants, ending)} act="Revoke" done="This grant of ${ending.entitlement} is revoked."
        changes=${[apiPath(place, "persons")]} onClose=${() => setEnding(null)} />`
    }</div>`;
}

function formatRevoke(grants: readonly Grant[], { entitlement }: Grant): string {
  const others = grants.filter((one) => one.entitlement === entitlement).length - 1;
  const loses =
    others === 0
      ? "They lose the access at once."
      : `They keep the access through ${others === 1 ? "another grant" : `the ${formatNumber(others)} other grants`} of it.`;
  return `${loses} You cannot undo this. If you grant it again, that is a new manual grant.`;
}

function gather(grants: readonly Grant[]): Held[] {
  const found = new Map<string, Held>();
  for (const grant of grants) {
    const { entitlement, expiresAt } = grant;
    const held = found.get(entitlement);
    if (held === undefined) {
      found.set(entitlement, { entitlement, grants: [grant], until: expiresAt });
      continue;
    }
    held.grants.push(grant);
    const isLonger = held.until !== null && (expiresAt === null || expiresAt > held.until);
    if (isLonger) held.until = expiresAt;
  }
  return [...found.values()];
}

function HeldLine({
  place,
  held: { entitlement, grants, until },
  onRevoke,
}: {
  place: Place;
  held: Held;
  onRevoke: (grant: Grant) => void;
}): View {
  const [isOpen, setOpen] = useState(false);
  const [first] = grants;
  if (first === undefined) return null;
  const isOne = grants.length === 1;
  return html`<li><div class="access-line">
      <b class="access-name"><${SafeText} text=${entitlement} limit=${80} /></b>
      <span class="access-end quiet"><${End} at=${until} /></span>
      ${
        isOne
          ? html`<${From} place=${place} grant=${first} /><${Revoke} grant=${first} onRevoke=${onRevoke} />`
          : html`<span class="held-from"><button type="button" class="link" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
              <${Icon} name=${isOpen ? "down" : "chevron"} size=${12} />from ${formatGrants(grants)}</button></span>`
      }</div>
    ${
      isOpen &&
      !isOne &&
      html`<ul class="access-grants">${grants.map(
        (
          grant,
        ) => html`<li key=${grant.id} class="access-line"><span class="access-end quiet"><${End} at=${grant.expiresAt} /></span>
          <${From} place=${place} grant=${grant} /><${Revoke} grant=${grant} onRevoke=${onRevoke} /></li>`,
      )}</ul>`
    }</li>`;
}

function End({ at }: { at: string | null }): View {
  return at === null ? "never expires" : html`ends <${Ago} at=${at} />`;
}

function From({ place, grant }: { place: Place; grant: Grant }): View {
  const { relay, eventId, grantedAt } = grant;
  return html`<span class="held-from"><${SourceLink} place=${place} relay=${relay} eventId=${eventId} by=${formatSource(grant)} />
    <span class="quiet">· <${Ago} at=${grantedAt} /></span></span>`;
}

function Revoke({ grant, onRevoke }: { grant: Grant; onRevoke: (grant: Grant) => void }): View {
  return html`<button data-needs="act_on_people" type="button" class="quiet-danger small" aria-label="Revoke… ${grant.entitlement}" onClick=${() => onRevoke(grant)}>Revoke…</button>`;
}

function formatGrants(grants: readonly Grant[]): string {
  return formatCount(
    grants.length,
    grants.every(({ source }) => source === "purchase") ? "purchase" : "grant",
  );
}

function formatSource({ source, sourceRef }: Grant): string {
  return source === "hand" ? `manually by ${sourceRef ?? "unknown"}` : `by a ${source}`;
}
