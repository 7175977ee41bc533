/** Setting of the OpenID provider that members sign in with: the client, the roles of groups, and whether passwords still sign in. */
import { useState } from "preact/hooks";
import type { ProviderView } from "../../src/platform/oidc/provider.ts";
import { session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState } from "../component/notice.ts";
import { useSend } from "../component/use-send.ts";
import { NEW_ROLE, RoleField, type ShownMembership, toInput } from "./role-fields.ts";
import { SettingCard, SettingSwitch } from "./setting-card.ts";

const PATH = "/api/oidc";
const CHANGES = [PATH, "/api/audit", "/api/session"];
const USUAL_GROUPS_CLAIM = "groups";

interface Settings {
  provider: ProviderView | null;
  redirectUrl: string;
  signOutUrl: string;
}

export function ProviderSetting(): View {
  const { data, error, reload } = useLoad<Settings>(PATH);
  const known = useCell(session);
  if (known?.mode === "local") return null;
  if (data === undefined) return html`<${LoadingState} error=${error} onRetry=${reload} />`;
  return html`<${ProviderForm} key=${data.provider?.setAt ?? ""} settings=${data} onChange=${reload} />`;
}

/** A group with its role. */
interface GroupRow extends ShownMembership {
  group: string;
}

function ProviderForm({ settings, onChange }: { settings: Settings; onChange: () => void }): View {
  const { provider, redirectUrl, signOutUrl } = settings;
  const { send, isSending, error, clear } = useSend();
  const [rows, setRows] = useState<readonly GroupRow[]>(provider?.roles ?? []);
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const text = (name: string): string => String(form.get(name) ?? "");
    const body = {
      name: text("name"),
      issuer: text("issuer"),
      clientId: text("clientId"),
      clientSecret: text("clientSecret"),
      groupsClaim: text("groupsClaim"),
      domains: text("domains")
        .split(/[\s,]+/)
        .filter((domain) => domain !== ""),
      trustsEmail: form.get("trustsEmail") !== null,
      roles: rows
        .filter(({ group }) => group.trim() !== "")
        .map(({ group, ...role }) => ({ group: group.trim(), ...toInput(role) })),
    };
    const sent = await send({
      method: "PUT",
      path: PATH,
      body,
      changes: CHANGES,
      done: "The provider is saved. Test it, then sign in with it in another browser.",
    });
    if (sent !== null) onChange();
  };
  const test = () =>
    send<{ signOut: boolean }>({
      method: "POST",
      path: `${PATH}/test`,
      done: ({ signOut }) =>
        signOut
          ? "The provider answers. A sign-out here also ends the session there."
          : "The provider answers. It has no address for a sign-out.",
    });
  const remove = async (): Promise<void> => {
    const done = "The provider is removed. Members sign in with their passwords.";
    if ((await send({ method: "DELETE", path: PATH, changes: CHANGES, done })) !== null) onChange();
  };
  const setPasswords = async (passwords: boolean): Promise<void> => {
    const done = passwords
      ? "Members can sign in with passwords."
      : "Members sign in only at the provider. Other sessions ended.";
    const sent = await send({
      method: "PUT",
      path: `${PATH}/passwords`,
      body: { passwords },
      changes: CHANGES,
      done,
    });
    if (sent !== null) onChange();
  };
  const field = (
    name: string,
    label: string,
    value: string,
    more: { type?: string; isRequired?: boolean; placeholder?: string; hint?: View } = {},
  ): View =>
    html`<label class="field"><span>${label}</span><input name=${name} type=${more.type ?? "text"} required=${more.isRequired ?? false} autocomplete="off" spellcheck=${false} placeholder=${more.placeholder ?? ""} defaultValue=${value} />
      ${more.hint !== undefined && html`<small class="quiet">${more.hint}</small>`}</label>`;
  return html`<div class="settings setting-after"><${SettingCard} title="Single sign-on" error=${error}>
    <p>Members can sign in at your OpenID provider. Their groups there give them roles here. <${DocsLink} to=${DOCS.singleSignOn}>Set-up by provider<//></p>
    <dl class="setting-facts">
      <div><dt>Redirect address to register at the provider</dt><dd><span><code>${redirectUrl}</code> <${CopyButton} text=${redirectUrl} label="Copy the redirect address" words=${null} /></span></dd></div>
      <div><dt>Address after a sign-out</dt><dd><span><code>${signOutUrl}</code> <${CopyButton} text=${signOutUrl} label="Copy the address after a sign-out" words=${null} /></span></dd></div>
    </dl>
    <form class="stack" onSubmit=${save} onInput=${clear}>
      ${field("issuer", "Issuer URL", provider?.issuer ?? "", { type: "url", isRequired: true, placeholder: "https://id.example.com" })}
      <div class="setting-line">
        ${field("clientId", "Client ID", provider?.clientId ?? "", { isRequired: true })}
        ${field("clientSecret", "Client secret", "", { type: "password", placeholder: provider?.hasSecret ? "unchanged" : "" })}</div>
      <div class="setting-line">
        ${field("name", "Name on the button", provider?.name ?? "", { placeholder: "single sign-on" })}
        ${field("groupsClaim", "Claim with the groups", provider?.groupsClaim ?? USUAL_GROUPS_CLAIM)}</div>
      ${field("domains", "Allowed domains of addresses", provider?.domains.join(", ") ?? "", { placeholder: "example.com", hint: "Empty allows every domain. Separate domains with commas." })}
      <label class="switch"><input name="trustsEmail" type="checkbox" defaultChecked=${provider?.trustsEmail ?? false} />Every address counts as verified</label>
      <small class="quiet">Switch this on only if the provider does not send <code>email_verified</code> and people cannot choose their address there.</small>
      <h3>Roles of groups</h3>
      <${GroupRows} rows=${rows} onChange=${setRows} />
      <div class="form-actions"><button class=${provider === null ? "primary" : ""} disabled=${isSending}>${isSending ? "Working…" : "Save provider"}</button>
        ${
          provider !== null &&
          html`<button type="button" disabled=${isSending} onClick=${() => void test()}>Test the provider</button>
            <button type="button" class="quiet-danger" disabled=${isSending} onClick=${() => void remove()}>Remove</button>`
        }</div>
    </form>
    ${
      provider !== null &&
      html`<${SettingSwitch} label="Members can also sign in with passwords" isOn=${provider.passwords} onSet=${setPasswords} />
        <p class="quiet">You can switch passwords off after an owner has signed in at the provider. This ends every session that did not begin there, also yours. If the provider is not available, run <code>relay oidc passwords on</code> on the server.</p>`
    }<//></div>`;
}

function GroupRows({
  rows,
  onChange,
}: {
  rows: readonly GroupRow[];
  onChange: (rows: readonly GroupRow[]) => void;
}): View {
  const set = (at: number, part: Partial<GroupRow>): void =>
    onChange(rows.map((row, index) => (index === at ? { ...row, ...part } : row)));
  return html`${rows.map(
    (
      row,
      at,
    ) => html`<fieldset class="stack role-fields" key=${at}><legend class="off-screen">Group ${at + 1}</legend>
      <label class="field"><span>Group</span><input value=${row.group} maxlength="100" autocomplete="off" spellcheck=${false} onInput=${(event: Event) => set(at, { group: (event.target as HTMLInputElement).value })} />
        <small class="quiet">The name as the provider sends it. <code>*</code> is everyone of an allowed domain.</small></label>
      <${RoleField} role=${row} onChange=${(part: Partial<ShownMembership>) => set(at, part)} />
      <div><button type="button" class="quiet-danger" onClick=${() => onChange(rows.filter((_, index) => index !== at))}>Remove this group</button></div>
    </fieldset>`,
  )}
  <div><button type="button" onClick=${() => onChange([...rows, { ...NEW_ROLE, group: "" }])}><${Icon} name="plus" size=${14} />Add a group</button></div>`;
}
