/** Fields for the roles of a member: each is a role in an app and an environment. */
import type { OwnerView } from "../../src/platform/account/owner.ts";
import type { Role } from "../../src/platform/account/permission.ts";
import { session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "../component/icon.ts";
import { ROLE_WORDS } from "./permission-words.ts";

export type ShownMembership = OwnerView["memberships"][number];

const EVERY = "*";
export const NEW_ROLE: ShownMembership = { app: EVERY, environment: EVERY, role: "viewer", payloads: false };

/** Returns a membership as the API takes it. */
export function toInput({ app, environment, role, payloads }: ShownMembership) {
  return {
    role,
    payloads,
    ...(app === EVERY ? {} : { app }),
    ...(environment === EVERY ? {} : { environment }),
  };
}

export function formatMembership({ app, environment, role, payloads }: ShownMembership): string {
  const apps = app === EVERY ? "every app" : app;
  const place = environment === EVERY ? apps : `${apps}, only ${environment}`;
  return `${role} of ${place}${payloads && role !== "owner" ? ", sees payloads" : ""}`;
}

export function RoleFields({
  roles,
  onChange,
}: {
  roles: readonly ShownMembership[];
  onChange: (roles: readonly ShownMembership[]) => void;
}): View {
  const set = (at: number, part: Partial<ShownMembership>): void =>
    onChange(roles.map((role, index) => (index === at ? { ...role, ...part } : role)));
  return html`${roles.map(
    (
      one,
      at,
    ) => html`<fieldset class="stack role-fields" key=${at}><legend class="off-screen">Role ${at + 1}</legend>
    <${RoleField} role=${one} onChange=${(part: Partial<ShownMembership>) => set(at, part)} />
    ${roles.length > 1 && html`<div><button type="button" class="quiet-danger" onClick=${() => onChange(roles.filter((_, index) => index !== at))}>Remove this role</button></div>`}
  </fieldset>`,
  )}
  <div><button type="button" onClick=${() => onChange([...roles, NEW_ROLE])}><${Icon} name="plus" size=${14} />Another role</button></div>`;
}

/** Fields of one role and its place. */
export function RoleField({
  role,
  onChange,
}: {
  role: ShownMembership;
  onChange: (part: Partial<ShownMembership>) => void;
}): View {
  const apps = useCell(session)?.apps ?? [];
  const textOf = (event: Event): string => (event.target as HTMLSelectElement).value;
  return html`<label class="field"><span>Role</span><select value=${role.role} onChange=${(event: Event) => onChange({ role: textOf(event) as Role })}>
      ${Object.entries(ROLE_WORDS).map(([name, words]) => html`<option key=${name} value=${name} selected=${name === role.role}>${name}: ${words}</option>`)}</select></label>
    <div class="setting-line">
      <label class="field"><span>App</span><select value=${role.app} onChange=${(event: Event) => onChange({ app: textOf(event) })}>
        <option value=${EVERY} selected=${role.app === EVERY}>Every app</option>
        ${apps.map(({ id, name }) => html`<option key=${id} value=${id} selected=${id === role.app}>${name}</option>`)}</select></label>
      <label class="field"><span>Environment</span><select value=${role.environment} onChange=${(event: Event) => onChange({ environment: textOf(event) as ShownMembership["environment"] })}>
        <option value=${EVERY} selected=${role.environment === EVERY}>Every environment</option>
        ${["development", "production"].map((name) => html`<option key=${name} value=${name} selected=${name === role.environment}>${name}</option>`)}</select></label>
    </div>
    ${role.role !== "owner" && html`<label class="switch"><input type="checkbox" checked=${role.payloads} onChange=${(event: Event) => onChange({ payloads: (event.target as HTMLInputElement).checked })} />Sees the values of payloads and records</label>`}`;
}
