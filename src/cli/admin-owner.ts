/**
 * What `relay admin create` and `relay admin reset` share: a password from standard input, or else a one-time link under which the owner
 * sets one. A password never stands on a command line.
 */
import { actorWords, COMMAND_LINE, hashPassword, type Owner } from "../account/owner.ts";
import { createSigninLink } from "../account/session.ts";
import { toIso } from "../ground/clock.ts";
import { writeJson } from "../ground/json.ts";
import type { Writer } from "../store/port.ts";
import { WHOLE_SERVER, writeAudit } from "../watch/audit.ts";
import { type Input, type Option, UsageError } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { readRunningUrl } from "./running-file.ts";
import { BASE_URL, DATA_DIR, DEFAULT_PORT, readBaseUrl, readDataDir } from "./service-option.ts";
import type { World } from "./world.ts";

export const OWNER_OPTIONS: readonly Option[] = [
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
export function readEmail(input: Input): string {
  const email = input.text("email");
  if (email === null) throw new UsageError("--email is missing: write --email you@example.com.");
  return email;
}

/** The hash of the password on standard input, without its last line break; null where none is asked for. */
export async function readPasswordHash(input: Input, world: World): Promise<string | null> {
  if (!input.on("password-stdin")) return null;
  return await hashPassword((await world.readInput()).replace(/\r?\n$/, ""));
}

/** A one-time link's token for the owner, where no password was given. */
export async function makeLink(tx: Writer, owner: Owner, nowMs: number) {
  return await createSigninLink(tx, { kind: "reset", ownerId: owner.id, nowMs });
}

export async function auditOwner(tx: Writer, action: string, owner: Owner, nowMs: number): Promise<void> {
  await writeAudit(tx, {
    environmentId: WHOLE_SERVER,
    atMs: nowMs,
    actor: actorWords(COMMAND_LINE),
    action,
    target: `owner:${owner.email}`,
  });
}

/** Writes what a script needs: the link, or the address that can sign in now. */
export function sayOwner(
  world: World,
  input: Input,
  made: { owner: Owner; link: { token: string; expiresAt: number } | null },
): void {
  const { owner, link } = made;
  const baseUrl =
    readBaseUrl(input) ?? readRunningUrl(readDataDir(input, world)) ?? `http://127.0.0.1:${DEFAULT_PORT}`;
  const url = link === null ? null : world.resetUrl(baseUrl, link.token);
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
