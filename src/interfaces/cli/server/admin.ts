/**
 * Manages the owners of the dashboard (`relay admin …`). A password comes from stdin, or the owner sets one through a one-time link. It
 * never appears on a command line.
 */

import { toIso } from "../../../base/clock.ts";
import { type JsonObject, writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import {
  createOwner,
  findOwnerByEmail,
  hashPassword,
  listOwnerViews,
  type Owner,
  removeOwner,
  setOwnerPassword,
} from "../../../platform/account/owner.ts";
import {
  listOtherOwners,
  listValidKeys,
  removeOwners,
  revokeKeys,
} from "../../../platform/account/remaining-access.ts";
import { createSigninLink, endSessions, signinLinkUrl } from "../../../platform/account/session.ts";
import { SERVER_SCOPE, writeAudit } from "../../../platform/audit/audit.ts";
import type { AuditAction } from "../../../platform/audit/audit-action.ts";
import type { Writer } from "../../../store/port.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT, readRunningUrl, withStore } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { BASE_URL, DATA, DEFAULT_PORT, readBaseUrl, readDataDir } from "../service-option.ts";
import { count } from "../sync/plan-lines.ts";
import { printList } from "../terminal/terminal.ts";
import { requireServerFolder } from "./apps.ts";

const OWNER_OPTIONS: readonly Option[] = [
  { name: "email", value: "<address>", env: "RELAY_ADMIN_EMAIL", help: "the owner's email address" },
  {
    name: "password-stdin",
    help: "read the password from standard input instead of creating a one-time link",
  },
  BASE_URL,
  JSON_OUTPUT,
  ...DATA,
];

const END_KEYS: Option = {
  name: "end-keys",
  help: "also revoke every key of all apps that was created in the dashboard or here",
};
const END_OWNERS: Option = { name: "end-owners", help: "also remove every other owner" };

interface GivenOwner {
  email: string;
  /** Null if the owner sets a password through a one-time link. */
  passwordHash: string | null;
  nowMs: number;
}

/** Creates or resets an owner and audits it in one transaction. It writes what a script needs: the link, or the address that can sign in now. */
async function saveOwner(
  input: Input,
  io: Io,
  action: "owner.created" | "owner.reset",
  save: (tx: Writer, given: GivenOwner) => Promise<Owner>,
  /** Runs in the same transaction. Its lines are printed after the link. */
  andThen: (tx: Writer, owner: Owner, nowMs: number) => Promise<AlsoSaid> = async () => NOTHING_ELSE,
): Promise<void> {
  const email = input.text("email");
  if (email === null) throw new UsageError("--email is missing: write --email you@example.com.");
  const password = input.on("password-stdin") ? (await io.readInput()).replace(/\r?\n$/, "") : null;
  const passwordHash = password === null ? null : await hashPassword(password);
  const nowMs = io.clock.now();
  const change = async (tx: Writer) => {
    const owner = await save(tx, { email, passwordHash, nowMs });
    await writeAudit(tx, {
      environmentId: SERVER_SCOPE,
      nowMs,
      by: formatActor(COMMAND_LINE),
      action,
      target: `owner:${owner.email}`,
    });
    const link =
      passwordHash === null ? await createSigninLink(tx, { kind: "reset", ownerId: owner.id, nowMs }) : null;
    return { owner, link, extra: await andThen(tx, owner, nowMs) };
  };
  const create = action === "owner.created";
  if (create) requireServerFolder(input, io);
  const { owner, link, extra } = await withStore(input, io, (store) => store.write("dashboard", change), {
    create,
  });
  const baseUrl =
    readBaseUrl(input) ?? readRunningUrl(readDataDir(input, io)) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const url = link === null ? null : signinLinkUrl(baseUrl, "reset", link.token);
  const expiresAt = link === null ? null : toIso(link.expiresAt);
  if (input.on("json")) {
    io.print(writeJson({ email: owner.email, link: url, expiresAt, ...extra.data }, 2));
  } else if (url === null) {
    io.print(owner.email);
    io.inform(
      `${owner.email} can sign in at ${baseUrl} now. Earlier sessions and keys of relay login have ended.`,
    );
  } else {
    io.print(url);
    io.inform(
      `${owner.email} sets a password with this link. It works once, until ${expiresAt}.${action === "owner.reset" ? " Earlier sessions and keys of relay login stay valid until then: relay admin sign-out ends the sessions." : ""}`,
    );
  }
  for (const line of extra.lines) io.inform(line);
}

interface AlsoSaid {
  lines: readonly string[];
  data: JsonObject;
}
const NOTHING_ELSE: AlsoSaid = { lines: [], data: {} };

const MAX_NAMED = 10;

/** Ends the keys and owners that the options name, and lists the others with the option that ends them. */
async function endOthers(tx: Writer, owner: Owner, nowMs: number, input: Input): Promise<AlsoSaid> {
  const [keys, owners] = [await listValidKeys(tx), await listOtherOwners(tx, owner.id)];
  const row = { nowMs, by: formatActor(COMMAND_LINE) };
  const endsKeys = input.on("end-keys");
  if (endsKeys) {
    await revokeKeys(tx, keys, nowMs);
    for (const { id, environmentId, kind, name, hint } of keys)
      await writeAudit(tx, {
        ...row,
        environmentId,
        action: "key.revoked",
        target: `key:${id}`,
        before: { kind, name, hint, why: "owner reset" },
      });
  }
  const endsOwners = input.on("end-owners");
  if (endsOwners) {
    await removeOwners(tx, owners);
    for (const { email } of owners)
      await writeAudit(tx, {
        ...row,
        environmentId: SERVER_SCOPE,
        action: "owner.removed",
        target: `owner:${email}`,
      });
  }
  const keyWords = keys.map(({ app, environment, name, hint }) => `${app}/${environment} ${hint} "${name}"`);
  const emails = owners.map(({ email }) => email);
  const left = [...(keys.length > 0 && !endsKeys ? ["--end-keys"] : [])];
  if (owners.length > 0 && !endsOwners) left.push("--end-owners");
  return {
    lines: [
      ...formatOthers(endsKeys ? "Revoked" : "Still valid", "key", keyWords),
      ...formatOthers(endsOwners ? "Removed" : "Still valid", "other owner", emails),
      ...(left.length === 0
        ? []
        : [
            `A person who knew the password may have created them. To end them, run this command again with ${left.join(" and ")}.`,
          ]),
    ],
    data: {
      keys: keys.map(({ environmentId: _, ...key }) => ({ ...key, ended: endsKeys })),
      owners: emails.map((email) => ({ email, ended: endsOwners })),
    },
  };
}

function formatOthers(what: string, noun: string, names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : "";
  const shown = plain(names.slice(0, MAX_NAMED).join(", "));
  return [`${what}: ${count(names.length, noun)}: ${shown}${more}.`];
}

export const adminCreate: Command = {
  words: ["admin", "create"],
  summary: "create an owner",
  details: "The command prints a link where the owner sets a password. The link works once.",
  options: OWNER_OPTIONS,
  examples: [
    "relay admin create --email you@example.com --base-url https://relay.example.com",
    "relay admin create --email you@example.com --password-stdin < password.txt",
  ],
  run: (input, io) => saveOwner(input, io, "owner.created", createOwner),
};

export const adminReset: Command = {
  words: ["admin", "reset"],
  summary: "reset an owner's password with a one-time link",
  details:
    "A new password ends the owner's sessions and keys of relay login. The command then lists the keys and other owners that stay valid, because a person who knew the password may have created them. --end-keys and --end-owners end these too.",
  options: [...OWNER_OPTIONS, END_KEYS, END_OWNERS],
  examples: [
    "relay admin reset --email you@example.com",
    "relay admin reset --email you@example.com --end-keys --end-owners",
  ],
  run: (input, io) =>
    saveOwner(
      input,
      io,
      "owner.reset",
      async (tx, { email, passwordHash, nowMs }) => {
        const owner = await findOwnerByEmail(tx, email);
        if (owner === null) {
          throw new CommandFailure(
            "not_found",
            `There is no owner ${email}: relay admin create creates one.`,
          );
        }
        if (passwordHash !== null) await setOwnerPassword(tx, owner.id, passwordHash, nowMs);
        return owner;
      },
      (tx, owner, nowMs) => endOthers(tx, owner, nowMs, input),
    ),
};

export const adminList: Command = {
  words: ["admin", "list"],
  summary: "list the owners of the dashboard",
  details: "The list shows the sessions of each owner and when the owner was last seen.",
  options: [JSON_OUTPUT, ...DATA],
  examples: ["relay admin list"],
  async run(input, io) {
    const nowMs = io.clock.now();
    const owners = await withStore(input, io, (store) => store.read((tx) => listOwnerViews(tx, nowMs)));
    await printList(input, io, owners, {
      columns: [
        { heading: "EMAIL", value: (one) => one.email, raw: true },
        { heading: "SIGNED IN", value: (one) => String(one.sessions), right: true },
        { heading: "LAST SEEN", value: (one) => one.seenAt ?? "" },
        { heading: "CREATED", value: (one) => one.createdAt },
        { heading: "PASSWORD", value: (one) => (one.hasPassword ? "set" : "not set yet") },
      ],
      none: "There is no owner: relay admin create creates one.",
    });
  },
};

const EMAIL = { name: "email", help: "the owner's address" } as const;

/** Performs an action on the owner that the command names, and audits it in the same transaction. */
async function actOn<Result>(
  input: Input,
  io: Io,
  action: AuditAction,
  act: (tx: Writer, owner: Owner) => Promise<Result>,
): Promise<Result> {
  const email = input.first();
  return await withStore(input, io, (store) =>
    store.write("dashboard", async (tx) => {
      const owner = await findOwnerByEmail(tx, email);
      if (owner === null)
        throw new CommandFailure("not_found", `There is no owner ${email}: relay admin list shows them.`);
      const done = await act(tx, owner);
      const by = formatActor(COMMAND_LINE);
      const row = { environmentId: SERVER_SCOPE, nowMs: io.clock.now(), by, action };
      await writeAudit(tx, { ...row, target: `owner:${owner.email}` });
      return done;
    }),
  );
}

export const adminRemove: Command = {
  words: ["admin", "remove"],
  summary: "remove an owner",
  details: "The command also ends the owner's sessions and keys of relay login.",
  arguments: [EMAIL],
  options: DATA,
  examples: ["relay admin remove former@example.com"],
  async run(input, io) {
    const { email } = await actOn(input, io, "owner.removed", (tx, { id }) => removeOwner(tx, id));
    io.inform(`${email} is not an owner any more.`);
  },
};

export const adminSignOut: Command = {
  words: ["admin", "sign-out"],
  summary: "end every session of an owner",
  details: "The owner must sign in again in every browser. Keys of relay login stay valid.",
  arguments: [EMAIL],
  options: DATA,
  examples: ["relay admin sign-out you@example.com"],
  async run(input, io) {
    const ended = await actOn(input, io, "owner.signed_out_everywhere", (tx, { id }) =>
      endSessions(tx, id, null),
    );
    io.inform(`${count(ended, "session")} ended.`);
  },
};
