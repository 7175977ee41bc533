/**
 * `relay admin …`: owners of the dashboard. A password comes from standard input, or else the owner sets one under a one-time link; it never
 * stands on a command line.
 */

import { actorWords, COMMAND_LINE } from "../account/api-key.ts";
import {
  createOwner,
  findOwnerByEmail,
  hashPassword,
  type Owner,
  setOwnerPassword,
} from "../account/owner.ts";
import { createSigninLink, signinLinkUrl } from "../account/session.ts";
import { toIso } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import type { Writer } from "../store/port.ts";
import { WHOLE_SERVER, writeAudit } from "../watch/audit.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "./command.ts";
import { JSON_OUTPUT, readRunningUrl, withStore } from "./data-directory.ts";
import { BASE_URL, DATA_DIR, DEFAULT_PORT, readBaseUrl, readDataDir } from "./service-option.ts";
import type { World } from "./world.ts";

const OWNER_OPTIONS: readonly Option[] = [
  { name: "email", value: "<address>", env: "RELAY_ADMIN_EMAIL", help: "the owner's e-mail address" },
  {
    name: "password-stdin",
    help: "read the password from standard input, instead of making a one-time link",
  },
  BASE_URL,
  JSON_OUTPUT,
  DATA_DIR,
];

/** The address given. Throws UsageError. */
function readEmail(input: Input): string {
  const email = input.text("email");
  if (email === null) throw new UsageError("--email is missing: write --email you@example.com.");
  return email;
}

/** The hash of the password on standard input, without its last line break; null where none is asked for. */
async function readPasswordHash(input: Input, world: World): Promise<string | null> {
  if (!input.on("password-stdin")) return null;
  return await hashPassword((await world.readInput()).replace(/\r?\n$/, ""));
}

/** A one-time link's token for the owner, where no password was given. */
async function makeLink(tx: Writer, owner: Owner, nowMs: number) {
  return await createSigninLink(tx, { kind: "reset", ownerId: owner.id, nowMs });
}

async function auditOwner(tx: Writer, action: string, owner: Owner, nowMs: number): Promise<void> {
  await writeAudit(tx, {
    environmentId: WHOLE_SERVER,
    atMs: nowMs,
    actor: actorWords(COMMAND_LINE),
    action,
    target: `owner:${owner.email}`,
  });
}

/** Writes what a script needs: the link, or the address that can sign in now. */
function sayOwner(
  world: World,
  input: Input,
  made: { owner: Owner; link: { token: string; expiresAt: number } | null },
): void {
  const { owner, link } = made;
  const baseUrl =
    readBaseUrl(input) ?? readRunningUrl(readDataDir(input, world)) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const url = link === null ? null : signinLinkUrl(baseUrl, "reset", link.token);
  const expiresAt = link === null ? null : toIso(link.expiresAt);
  if (input.on("json")) {
    world.say(writeJson({ email: owner.email, link: url, expiresAt }, 2));
  } else if (url === null) {
    world.say(owner.email);
    world.tell(`${owner.email} can sign in at ${baseUrl} now; earlier sessions have ended.`);
  } else {
    world.say(url);
    world.tell(`${owner.email} sets a password under this link; it works once, until ${expiresAt}.`);
  }
}

export const adminCreate: Command = {
  words: ["admin", "create"],
  summary: "make an owner of the dashboard, with a one-time link to set the password",
  options: OWNER_OPTIONS,
  examples: [
    "relay admin create --email you@example.com --base-url https://relay.example.com",
    "relay admin create --email you@example.com --password-stdin < password.txt",
  ],
  async run(input, world) {
    const email = readEmail(input);
    const passwordHash = await readPasswordHash(input, world);
    const nowMs = world.clock.now();
    const made = await withStore(
      input,
      world,
      (store) =>
        store.write("dashboard", async (tx) => {
          const owner = await createOwner(tx, { email, passwordHash, nowMs });
          await auditOwner(tx, "owner.created", owner, nowMs);
          return { owner, link: passwordHash === null ? await makeLink(tx, owner, nowMs) : null };
        }),
      { create: true },
    );
    sayOwner(world, input, made);
    return 0;
  },
};

export const adminReset: Command = {
  words: ["admin", "reset"],
  summary: "reset an owner's password, with a one-time link",
  options: OWNER_OPTIONS,
  async run(input, world) {
    const email = readEmail(input);
    const passwordHash = await readPasswordHash(input, world);
    const nowMs = world.clock.now();
    const made = await withStore(input, world, (store) =>
      store.write("dashboard", async (tx) => {
        const owner = await findOwnerByEmail(tx, email);
        if (owner === null) {
          throw new CommandFailure("not_found", `There is no owner ${email}: relay admin create makes one.`);
        }
        if (passwordHash !== null) await setOwnerPassword(tx, owner.id, passwordHash);
        await auditOwner(tx, "owner.reset", owner, nowMs);
        return { owner, link: passwordHash === null ? await makeLink(tx, owner, nowMs) : null };
      }),
    );
    sayOwner(world, input, made);
    return 0;
  },
};
