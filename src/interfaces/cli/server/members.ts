/** Manages the members of a server and their roles (`relay members …`). A member sets their password through a one-time link. */

import { writeJson } from "../../../base/json.ts";
import { createLog } from "../../../base/log.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import { createInvitation } from "../../../platform/account/invitation.ts";
import {
  listGivenMemberships,
  readMemberships,
  setMemberships,
  viewMembership,
} from "../../../platform/account/membership.ts";
import {
  createOwner,
  findOwnerByEmail,
  listOwnerViews,
  type OwnerView,
  removeOwner,
  requireInvited,
} from "../../../platform/account/owner.ts";
import {
  EVERY,
  type Membership,
  ROLE_NAMES,
  ROLES,
  type Role,
} from "../../../platform/account/permission.ts";
import {
  isFactorRequired,
  resetFactors,
  setFactorRequired,
} from "../../../platform/account/second-factor.ts";
import { SERVER_SCOPE, writeAudit } from "../../../platform/audit/audit.ts";
import { mailInvitation } from "../../../platform/mail/invitation-mail.ts";
import { ServerMail } from "../../../platform/mail/server-mail.ts";
import { unlinkMember } from "../../../platform/oidc/admitted-identity.ts";
import type { Writer } from "../../../store/port.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT, readAllowPrivate, readRunningUrl, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import {
  ALLOW_PRIVATE,
  BASE_URL,
  DATA,
  DEFAULT_PORT,
  MAIL_URL,
  readBaseUrl,
  readDataDir,
  readServerMail,
} from "../service-option.ts";
import { printList } from "../terminal/terminal.ts";

const EMAIL = { name: "email", help: "the member's address" } as const;

const ROLE: Option = {
  name: "role",
  value: "<role[:app[/environment]]>",
  list: true,
  help: `${ROLE_NAMES.join(", ")}; without a place, in every app`,
};
const PAYLOADS: Option = { name: "payloads", help: "the member also sees the values of payloads" };

/** Reads the roles of --role. */
function readRoles(input: Input): Membership[] {
  const given = input.list("role");
  if (given.length === 0)
    throw new UsageError(
      `--role is missing: write --role and one of ${ROLE_NAMES.join(", ")}, with :app or :app/environment for a place.`,
    );
  const payloads = input.on("payloads");
  return readMemberships(given.map((text) => readRole(text, payloads)));
}

/** Reads `support:shop/production` as a role in a place. */
export function readRole(text: string, payloads: boolean): GivenRole {
  const read = /^([^:]*)(?::([^:/]*)(?:\/([^:/]+))?)?$/.exec(text);
  if (read === null)
    throw new UsageError(`--role ${text} has no known form: write role, role:app or role:app/environment.`);
  const [, role = "", app, environment] = read;
  if (!Object.hasOwn(ROLES, role))
    throw new UsageError(`--role ${text} has no known role: write one of ${ROLE_NAMES.join(", ")}.`);
  return {
    role: role as Role,
    payloads,
    ...(app === undefined || app === "" ? {} : { app }),
    ...(environment === undefined ? {} : { environment }),
  };
}

interface GivenRole {
  role: Role;
  payloads: boolean;
  app?: string;
  environment?: string;
}

/** Formats a role as `--role` takes it. */
export function formatRole({ app, environment, role, payloads }: OwnerView["memberships"][number]): string {
  const place = environment === EVERY ? app : `${app}/${environment}`;
  return `${role}${app === EVERY && environment === EVERY ? "" : `:${place}`}${payloads && role !== "owner" ? " with payloads" : ""}`;
}

/** Formats the roles of a member, and those that groups give. */
function formatRoles({ memberships, groupMemberships }: OwnerView): string {
  const ofGroups = groupMemberships.map((one) => `${formatRole(one)} by a group`);
  return [...memberships.map(formatRole), ...ofGroups].join(", ") || "none";
}

async function requireMember(tx: Writer, email: string) {
  const found = await findOwnerByEmail(tx, email);
  if (found !== null) return found;
  throw new CommandFailure("not_found", `There is no member ${email}: relay members list shows them.`);
}

/** The row of the audit, without what changed. */
function auditRow(io: Io, email: string) {
  const by = formatActor(COMMAND_LINE);
  return { environmentId: SERVER_SCOPE, nowMs: io.clock.now(), by, target: `owner:${email}` };
}

/** Formats whether the member has a password, or the state of the invitation. */
function formatPassword({ hasPassword, invitation }: OwnerView): string {
  if (hasPassword) return "set";
  if (invitation === null) return "not set yet";
  return invitation.mail === null ? "invited" : `invited, mail ${invitation.mail.state}`;
}

export const membersList: Command = {
  words: ["members", "list"],
  summary: "list the members of the server with their roles",
  options: [JSON_OUTPUT, ...DATA],
  examples: ["relay members list"],
  async run(input, io) {
    const nowMs = io.clock.now();
    const members = await withStore(input, io, (store) => store.read((tx) => listOwnerViews(tx, nowMs)));
    await printList(input, io, members, {
      columns: [
        { heading: "EMAIL", value: (one) => one.email, raw: true },
        { heading: "ROLES", value: formatRoles },
        { heading: "LAST SEEN", value: (one) => one.seenAt ?? "" },
        { heading: "PASSWORD", value: formatPassword },
        { heading: "SECOND FACTOR", value: (one) => (one.hasFactor ? "yes" : "no") },
      ],
      none: "There is no member: relay admin create creates the first owner.",
    });
  },
};

const NO_MAIL: Option = { name: "no-mail", help: "mail nothing, and print the link" };
/** The options of a command that makes a link for a member. */
const LINK_OPTIONS: readonly Option[] = [MAIL_URL, NO_MAIL, ALLOW_PRIVATE, BASE_URL, JSON_OUTPUT, ...DATA];

/** Creates the link of the member that `saveOwner` returns, and mails or prints it. A link that was mailed is not printed. */
async function sendLink(
  input: Input,
  io: Io,
  saveOwner: (tx: Writer) => Promise<{ id: string; email: string }>,
): Promise<void> {
  const url = input.on("no-mail") ? null : readServerMail(input);
  const baseUrl =
    readBaseUrl(input) ?? readRunningUrl(readDataDir(input, io)) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const nowMs = io.clock.now();
  const { email, invitation, mail } = await withStore(input, io, async (store) => {
    const made = await store.write("dashboard", async (tx) => {
      const { id, email } = await saveOwner(tx);
      return { email, invitation: await createInvitation(tx, { ownerId: id, baseUrl, nowMs }) };
    });
    if (url === null) return { ...made, mail: null };
    const server = makeServerMail(url, input, io);
    const letter = { invitation: made.invitation, to: made.email, inviter: null, baseUrl, nowMs };
    return {
      ...made,
      mail: await mailInvitation(store, server, { ...letter, by: formatActor(COMMAND_LINE) }),
    };
  });
  const link = mail?.state === "sent" ? null : invitation.url;
  const { expiresAt } = invitation;
  if (input.on("json")) return io.print(writeJson({ email, link, expiresAt, mail }, 2));
  if (mail !== null && mail.message !== null) io.inform(mail.message);
  if (link === null)
    return io.inform(`The link went to ${email} by mail. It works once, until ${expiresAt}.`);
  io.print(link);
  io.inform(`${email} sets a password with this link. It works once, until ${expiresAt}.`);
}

function makeServerMail(url: NonNullable<ReturnType<typeof readServerMail>>, input: Input, io: Io) {
  const { clock } = io;
  const log = createLog({ clock, format: "text", sink: (line) => io.inform(line) });
  return new ServerMail(url, { clock, log, allowPrivate: readAllowPrivate(input, io) });
}

export const membersInvite: Command = {
  words: ["members", "invite"],
  summary: "create a member with a role and a one-time link",
  details:
    "Relay mails the link over the mail server of --mail-url. Without one, the command prints it. The member sets a password with the link, which works once, for a day. Give --role several times for several places.",
  arguments: [EMAIL],
  options: [ROLE, PAYLOADS, ...LINK_OPTIONS],
  examples: ["relay members invite kim@example.com --role support:shop/production"],
  async run(input, io) {
    const memberships = readRoles(input);
    await sendLink(input, io, async (tx) => {
      const nowMs = io.clock.now();
      const given = { email: input.first(), passwordHash: null, memberships, nowMs };
      const member = await createOwner(tx, given);
      const after = { memberships: memberships.map(viewMembership) };
      await writeAudit(tx, { ...auditRow(io, member.email), action: "owner.created", after });
      return member;
    });
  },
};

export const membersResend: Command = {
  words: ["members", "resend"],
  summary: "send an invitation again with a new link",
  details: "The former link stops working. A member who has a password needs relay admin reset instead.",
  arguments: [EMAIL],
  options: LINK_OPTIONS,
  examples: ["relay members resend kim@example.com"],
  run: (input, io) =>
    sendLink(input, io, async (tx) => {
      const member = await requireMember(tx, input.first());
      await requireInvited(tx, member);
      await writeAudit(tx, { ...auditRow(io, member.email), action: "owner.invited" });
      return member;
    }),
};

export const membersChange: Command = {
  words: ["members", "change"],
  summary: "replace the roles of a member",
  details:
    "The roles that the command names replace all roles of the member, from the member's next request on. The last owner of everything stays one.",
  arguments: [EMAIL],
  options: [ROLE, PAYLOADS, ...DATA],
  examples: ["relay members change kim@example.com --role developer:shop --role viewer:blog"],
  async run(input, io) {
    const memberships = readRoles(input);
    const member = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const found = await requireMember(tx, input.first());
        const before = { memberships: (await listGivenMemberships(tx, found.id)).map(viewMembership) };
        await setMemberships(tx, found.id, memberships, io.clock.now());
        const after = { memberships: memberships.map(viewMembership) };
        await writeAudit(tx, {
          ...auditRow(io, found.email),
          action: "owner.roles_changed",
          before,
          after,
        });
        return found;
      }),
    );
    const roles = memberships.map((one) => formatRole(viewMembership(one))).join(", ");
    io.inform(`${member.email} is now: ${roles}.`);
  },
};

export const membersRemove: Command = {
  words: ["members", "remove"],
  summary: "remove a member",
  details: "The command also ends the member's sessions and keys of relay login.",
  arguments: [EMAIL],
  options: DATA,
  examples: ["relay members remove kim@example.com"],
  async run(input, io) {
    const { email } = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const removed = await removeOwner(tx, (await requireMember(tx, input.first())).id);
        await writeAudit(tx, { ...auditRow(io, removed.email), action: "owner.removed" });
        return removed;
      }),
    );
    io.inform(`${email} is not a member any more.`);
  },
};

export const membersResetFactor: Command = {
  words: ["members", "reset-factor"],
  summary: "reset the lost second factor of a member",
  details:
    "The member signs in with the password and can add a new factor. The command also ends the member's sessions and recovery codes.",
  arguments: [EMAIL],
  options: DATA,
  examples: ["relay members reset-factor kim@example.com"],
  async run(input, io) {
    const { email, factors } = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const member = await requireMember(tx, input.first());
        const factors = await resetFactors(tx, member.id);
        const row = { ...auditRow(io, member.email), before: { factors } };
        await writeAudit(tx, { ...row, action: "owner.factors_reset" });
        return { email: member.email, factors };
      }),
    );
    io.inform(
      factors === 0
        ? `${email} had no second factor. The sessions of ${email} have ended.`
        : `${email} signs in with only the password now. The sessions of ${email} have ended.`,
    );
  },
};

export const membersUnlink: Command = {
  words: ["members", "unlink"],
  summary: "unlink a member from their provider account",
  details:
    "Use it if the account at the OpenID provider was created again. The next sign-in there links the member by the verified address. Sessions that began at the provider end.",
  arguments: [EMAIL],
  options: DATA,
  examples: ["relay members unlink kim@example.com"],
  async run(input, io) {
    const { email, links } = await withStore(input, io, (store) =>
      store.write("dashboard", async (tx) => {
        const member = await requireMember(tx, input.first());
        const links = await unlinkMember(tx, member.id);
        if (links > 0) await writeAudit(tx, { ...auditRow(io, member.email), action: "owner.unlinked" });
        return { email: member.email, links };
      }),
    );
    io.inform(
      links === 0
        ? `${email} is linked to no account at an OpenID provider: nothing changed.`
        : `${email} is unlinked. The next sign-in at the provider links by the address.`,
    );
  },
};

export const membersRequireFactor: Command = {
  words: ["members", "require-factor"],
  summary: "show or set whether members need a second factor",
  details:
    "After on, a member without a second factor can only add one after the sign-in. If the server was started with --second-factor, that option decides.",
  arguments: [
    {
      name: "on|off",
      help: "on or off; without it, the command shows the rule",
      optional: true,
      of: ["on", "off"],
    },
  ],
  options: [JSON_OUTPUT, ...DATA],
  examples: ["relay members require-factor", "relay members require-factor on"],
  async run(input, io) {
    const [text] = input.positionals;
    if (text !== undefined && text !== "on" && text !== "off")
      throw new UsageError(`${JSON.stringify(text)} is not a rule: write on or off.`);
    const required = await withStore(input, io, (store) =>
      text === undefined
        ? store.read(isFactorRequired)
        : store.write("dashboard", async (tx) => {
            const required = text === "on";
            const before = await setFactorRequired(tx, required);
            const { environmentId, nowMs, by } = auditRow(io, "");
            const row = { environmentId, nowMs, by, target: "server" };
            const change = { before: { required: before }, after: { required } };
            if (before !== required)
              await writeAudit(tx, { ...row, action: "server.factor_rule_changed", ...change });
            return required;
          }),
    );
    io.print(
      input.on("json")
        ? writeJson({ required }, 2)
        : required
          ? "Each member needs a second factor."
          : "A second factor is optional.",
    );
  },
};
