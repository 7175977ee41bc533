/** Members of the server: a list, invitations by one-time link, roles and removal. */
import { useState } from "preact/hooks";
import type { InvitationMail } from "../../src/platform/account/invitation.ts";
import type { OwnerView } from "../../src/platform/account/owner.ts";
import { session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { SecretOnce } from "../component/secret-once.ts";
import { Sentence } from "../component/sentence.ts";
import { StateMark } from "../component/state-mark.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { FactorRule } from "./factor-rule.ts";
import { formatMembership, NEW_ROLE, RoleFields, type ShownMembership, toInput } from "./role-fields.ts";

const PATH = "/api/owners";

interface Link {
  url: string;
  expiresAt: string;
}

/** The answer to an invitation. The link is null if the mail server accepted the mail with it. */
interface Invited {
  link: Link | null;
  mail: InvitationMail | null;
}

export function MemberList(): View {
  const { data, error, reload } = useLoad<{ owners: OwnerView[]; mailsInvitations: boolean }>(PATH, 60_000);
  const known = useCell(session);
  const [isInviting, setInviting] = useState(false);
  const [changing, setChanging] = useState<OwnerView | null>(null);
  const [removing, setRemoving] = useState<OwnerView | null>(null);
  const [resetting, setResetting] = useState<OwnerView | null>(null);
  const [unlinking, setUnlinking] = useState<OwnerView | null>(null);
  const [link, setLink] = useState<{ email: string; link: Link; mail: InvitationMail | null } | null>(null);
  const { send, isSending, error: refused } = useSend();
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  if (known?.mode === "local")
    return html`<p class="tab-lead">Local development has one owner, <b>${known.owner?.email}</b>, and no passwords. The person with the link from <code>relay dev</code> is the owner. On a server, you can invite members here.</p>`;
  const relink = async (owner: OwnerView): Promise<void> => {
    const sent = await send<Invited>({
      method: "POST",
      path: `${PATH}/${owner.id}/link`,
      changes: [PATH],
      done: sayMailed(owner.email),
    });
    if (sent === null) return;
    const { link, mail } = sent.answer;
    if (link !== null) setLink({ email: owner.email, link, mail });
  };
  const you = known?.owner?.email;
  return html`<p class="tab-lead">Members sign in to this dashboard. A role says what a member may do, in an app and an environment.</p>
    <div class="tab-actions"><button type="button" class="primary" onClick=${() => setInviting(true)}><${Icon} name="plus" size=${14} />Invite a member</button></div>
    ${refused !== null && html`<${Notice} kind="bad"><${Sentence} text=${refused} /><//>`}
    <${MailFailures} owners=${data.owners} />
    <${Table} label="Members" columns=${columnsOf({ you, isSending, mails: data.mailsInvitations, onChange: setChanging, onLink: (owner) => void relink(owner), onReset: setResetting, onUnlink: setUnlinking, onRemove: setRemoving })} items=${data.owners} />
    ${isInviting && html`<${Invite} mails=${data.mailsInvitations} onClose=${() => setInviting(false)} />`}
    ${link !== null && html`<${Dialog} title="A new link for ${link.email}" onClose=${() => setLink(null)} mustAnswer><${ShownLink} link=${link.link} mail=${link.mail} onClose=${() => setLink(null)} /><//>`}
    ${changing !== null && html`<${Change} owner=${changing} onClose=${() => setChanging(null)} />`}
    ${removing !== null && html`<${Remove} owner=${removing} onClose=${() => setRemoving(null)} />`}
    ${resetting !== null && html`<${ResetFactor} owner=${resetting} onClose=${() => setResetting(null)} />`}
    ${unlinking !== null && html`<${Unlink} owner=${unlinking} onClose=${() => setUnlinking(null)} />`}
    <${FactorRule} />`;
}

interface Acts {
  you: string | undefined;
  isSending: boolean;
  /** True if the server mails links. */
  mails: boolean;
  onChange: (owner: OwnerView) => void;
  onLink: (owner: OwnerView) => void;
  onReset: (owner: OwnerView) => void;
  onUnlink: (owner: OwnerView) => void;
  onRemove: (owner: OwnerView) => void;
}

function columnsOf({
  you,
  isSending,
  mails,
  onChange,
  onLink,
  onReset,
  onUnlink,
  onRemove,
}: Acts): Column<OwnerView>[] {
  const factor: Column<OwnerView> = {
    name: "factor",
    title: "Second factor",
    priority: 3,
    size: "short",
    cell: ({ hasFactor }) => (hasFactor ? "yes" : html`<span class="quiet">no</span>`),
  };
  return [
    {
      name: "owner",
      title: "Member",
      priority: 1,
      size: "address",
      cell: ({ email }) =>
        html`<span class="clip"><b><${SafeText} text=${email} limit=${80} /></b>${email === you && html` <span class="chip">you</span>`}</span>`,
    },
    {
      name: "roles",
      title: "Roles",
      priority: 2,
      cell: ({ memberships, groupMemberships }) =>
        memberships.length + groupMemberships.length === 0
          ? html`<span class="quiet">none</span>`
          : html`<span class="clip"><${SafeText} text=${[...memberships.map(formatMembership), ...groupMemberships.map((one) => `${formatMembership(one)} by a group`)].join("; ")} limit=${160} /></span>`,
    },
    {
      name: "seen",
      title: "Last seen",
      priority: 2,
      size: "name",
      cell: (owner) =>
        owner.hasPassword || owner.seenAt !== null
          ? html`<${Ago} at=${owner.seenAt} />`
          : html`<${InvitationState} owner=${owner} />`,
    },
    {
      name: "sessions",
      title: "Signed in",
      priority: 3,
      size: "short",
      cell: ({ sessions }) => String(sessions),
    },
    factor,
    {
      name: "acts",
      title: "",
      priority: 2,
      cell: (owner) => html`<span class="row-acts">
        ${!owner.hasPassword && !owner.isLinked && owner.email !== you && html`<button type="button" disabled=${isSending} aria-label="${mails ? "Send again to" : "New link for"} ${owner.email}" onClick=${() => onLink(owner)}>${mails ? "Send again" : "New link"}</button>`}
        ${owner.hasFactor && owner.email !== you && html`<button type="button" aria-label="Reset the second factor of ${owner.email}" onClick=${() => onReset(owner)}>Reset factor…</button>`}
        ${owner.isLinked && owner.email !== you && html`<button type="button" aria-label="Unlink… ${owner.email}" onClick=${() => onUnlink(owner)}>Unlink…</button>`}
        <button type="button" aria-label="Change roles of ${owner.email}" onClick=${() => onChange(owner)}>Roles…</button>
        ${owner.email !== you && html`<button type="button" class="quiet-danger" aria-label="Remove… ${owner.email}" onClick=${() => onRemove(owner)}>Remove…</button>`}</span>`,
    },
  ];
}

/** The state of the invitation of a member who has not signed in yet. */
function InvitationState({ owner: { invitation } }: { owner: OwnerView }): View {
  if (invitation === null) return html`<span class="quiet">invitation ended</span>`;
  const [look, word] = INVITATION_MARKS[invitation.mail?.state ?? "none"];
  return html`<${StateMark} state=${look} word=${word} />`;
}

const INVITATION_MARKS: Readonly<
  Record<InvitationMail["state"] | "none", readonly [look: string, word: string]>
> = {
  none: ["queued", "Invited"],
  sent: ["queued", "Invited by mail"],
  failed: ["failed", "Mail failed"],
  unknown: ["interrupted", "Mail unknown"],
};

/** Says why invitations were not mailed, for members who still wait for one. */
function MailFailures({ owners }: { owners: readonly OwnerView[] }): View {
  const failures = owners.flatMap(({ id, email, invitation }) => {
    const message = invitation?.mail?.message ?? null;
    return message === null ? [] : [{ id, email, message }];
  });
  return html`${failures.map(
    ({ id, email, message }) =>
      html`<${Notice} key=${id} kind="bad"><b><${SafeText} text=${email} limit=${80} /></b>: <${Sentence} text=${message} /><//>`,
  )}`;
}

/** Returns the confirmation after a link was mailed; none if the dialog shows the link. */
function sayMailed(email: string): (answer: Invited) => string | null {
  return ({ link }) => (link === null ? `The invitation went to ${email}.` : null);
}

function ShownLink({
  link,
  mail,
  onClose,
}: {
  link: Link;
  mail: InvitationMail | null;
  onClose: () => void;
}): View {
  const hint =
    "Give this link only to the new member. The member sets a password with it. The link works once.";
  return html`${mail?.message != null && html`<${Notice} kind="bad"><${Sentence} text=${mail.message} /><//>`}
    <${SecretOnce} secrets=${[{ label: "Link", hint, value: link.url }]} />
    <p class="quiet">It expires <${Ago} at=${link.expiresAt} />.</p>
    <div class="dialog-actions"><button type="button" class="primary" onClick=${onClose}>I copied the link</button></div>`;
}

function Invite({ mails, onClose }: { mails: boolean; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const [made, setMade] = useState<{ link: Link; mail: InvitationMail | null } | null>(null);
  const [isMailed, setMailed] = useState(mails);
  const [roles, setRoles] = useState<readonly ShownMembership[]>([NEW_ROLE]);
  const invite = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const email = String(new FormData(event.target as HTMLFormElement).get("email") ?? "");
    const body = { email, memberships: roles.map(toInput), mail: isMailed };
    const sent = await send<Invited>({
      method: "POST",
      path: PATH,
      body,
      changes: [PATH],
      done: sayMailed(email),
    });
    if (sent === null) return;
    const { link, mail } = sent.answer;
    if (link === null) onClose();
    else setMade({ link, mail });
  };
  if (made !== null)
    return html`<${Dialog} title="The new member’s link" onClose=${onClose} mustAnswer><${ShownLink} ...${made} onClose=${onClose} /><//>`;
  const [idle, busy] = isMailed
    ? ["Send invitation", "Sending invitation…"]
    : ["Create link", "Creating link…"];
  // The dialog cannot be closed while the link is being made, because the link is shown only once.
  return html`<${Dialog} title="Invite a member" onClose=${onClose} mustAnswer=${isSending}><form class="stack" onSubmit=${invite}>
    <label class="field"><span>E-mail address</span><input name="email" type="email" required autofocus autocomplete="off" />
      <small>The member signs in with this address.</small></label>
    ${
      mails
        ? html`<label class="switch"><input type="checkbox" checked=${isMailed} onChange=${(event: Event) => setMailed((event.target as HTMLInputElement).checked)} />Mail the link to this address</label>
          <small class="quiet">Without the mail, you get the link and give it to the member.</small>`
        : html`<p class="quiet">You get a link to give to the member. Relay mails it if the server starts with <code>--mail-url</code>.</p>`
    }
    <${RoleFields} roles=${roles} onChange=${setRoles} />
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? busy : idle}</button></div>
  </form><//>`;
}

function Change({ owner, onClose }: { owner: OwnerView; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const [roles, setRoles] = useState<readonly ShownMembership[]>(
    owner.memberships.length === 0 ? [NEW_ROLE] : owner.memberships,
  );
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const path = `${PATH}/${owner.id}`;
    const body = { memberships: roles.map(toInput) };
    const done = `The roles of ${owner.email} are saved.`;
    if ((await send({ method: "PUT", path, body, changes: [PATH], done })) !== null) onClose();
  };
  return html`<${Dialog} title="Roles of ${owner.email}" onClose=${onClose}><form class="stack" onSubmit=${save}>
    <${RoleFields} roles=${roles} onChange=${setRoles} />
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" disabled=${isSending} onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Saving…" : "Save roles"}</button></div>
  </form><//>`;
}

function ResetFactor({ owner, onClose }: { owner: OwnerView; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const reset = async (): Promise<void> => {
    const path = `${PATH}/${owner.id}/factors`;
    const done = `${owner.email} signs in with only the password now.`;
    if ((await send({ method: "DELETE", path, changes: [PATH], done })) !== null) onClose();
  };
  return html`<${Dialog} title="Reset the second factor of ${owner.email}?" onClose=${onClose}>
    <p>Make sure that ${owner.email} asked for this, because only the password protects the account afterwards. Their sessions end at once.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void reset()}>${isSending ? "Resetting…" : "Reset the factor"}</button></div>
  <//>`;
}

function Unlink({ owner, onClose }: { owner: OwnerView; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const unlink = async (): Promise<void> => {
    const path = `${PATH}/${owner.id}/identity`;
    const done = `${owner.email} is unlinked.`;
    if ((await send({ method: "DELETE", path, changes: [PATH], done })) !== null) onClose();
  };
  return html`<${Dialog} title="Unlink ${owner.email} from the provider?" onClose=${onClose}>
    <p>Unlink a member whose account at the provider was created again. The next sign-in there with the verified address ${owner.email} links the new account. Sessions that began at the provider end at once.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void unlink()}>${isSending ? "Unlinking…" : "Unlink the account"}</button></div>
  <//>`;
}

function Remove({ owner, onClose }: { owner: OwnerView; onClose: () => void }): View {
  const { send, isSending, error } = useSend();
  const remove = async (): Promise<void> => {
    const path = `${PATH}/${owner.id}`;
    const done = `${owner.email} is not a member any more.`;
    if ((await send({ method: "DELETE", path, changes: [PATH], done })) !== null) onClose();
  };
  return html`<${Dialog} title="Remove ${owner.email}?" onClose=${onClose}>
    <p>Their sessions and login keys end at once. Their changes stay in the audit log. Keys that they created under Settings › Keys still work.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="danger" disabled=${isSending} onClick=${() => void remove()}>${isSending ? "Removing…" : "Remove member"}</button></div>
  <//>`;
}
