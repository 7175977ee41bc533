/**
 * The domain that mail is sent from. A TXT record proves control of the domain, and without that proof no mail is sent. Each kind of mail has
 * its own local part (`event@…`, `account@…`). Source: the specification's "Action-level errors" (sender_domain_required), decisions section
 * 5.
 */
import { randomBytes } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { domainToASCII } from "node:url";
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { Refusal } from "../../base/refusal.ts";
import { fields, show, timeOrNull } from "../../base/schema.ts";
import type { Reader, Store, Writer } from "../../store/port.ts";
import { defineTable, integer, orNull, type RowOf, text } from "../../store/table.ts";
import { type Change, writeAudit } from "../audit/audit.ts";

const SENDER_DOMAIN = defineTable({
  name: "sender_domain",
  key: ["environmentId"],
  columns: {
    environmentId: integer(),
    domain: text(),
    verificationToken: text(),
    verifiedAt: orNull(integer()),
    checkedAt: orNull(integer()),
    eventWord: text(),
    accountWord: text(),
  },
});

type SenderDomain = RowOf<typeof SENDER_DOMAIN>;

export const senderDomainView = Type.Object({
  domain: Type.String(),
  verified: Type.Boolean(),
  verifiedAt: timeOrNull,
  checkedAt: timeOrNull,
  eventWord: Type.String(),
  accountWord: Type.String(),
  /** The DNS record to create. */
  record: Type.Object({ type: Type.Literal("TXT"), name: Type.String(), value: Type.String() }),
});

/** Looks up TXT records, each with its strings joined; empty if the name has none. Throws if DNS failed. */
export type TxtResolver = (name: string) => Promise<string[]>;

export const senderDomainInput = fields({
  domain: Type.String({ description: "a domain such as example.com" }),
  eventWord: Type.Optional(Type.String()),
  accountWord: Type.Optional(Type.String()),
});

export type SenderDomainInput = Static<typeof senderDomainInput>;

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const WORD = /^[a-z0-9](?:[a-z0-9+_-]|\.(?=[a-z0-9])){0,62}$/;

/** Formats the domain for the API, with the record to create. */
export function viewSenderDomain(row: SenderDomain): Static<typeof senderDomainView> {
  const { domain, verificationToken } = row;
  const record = { type: "TXT", name: recordName(domain), value: recordValue(verificationToken) } as const;
  return show(senderDomainView, { ...row, verified: row.verifiedAt !== null, record });
}

export function findSenderDomain(tx: Reader, environmentId: number): Promise<SenderDomain | null> {
  return SENDER_DOMAIN.find(tx, { environmentId });
}

/** Finds the sender address of a kind of mail; null until the domain is verified. */
export async function findSenderAddress(
  tx: Reader,
  environmentId: number,
  kind: "event" | "account",
): Promise<string | null> {
  const row = await findSenderDomain(tx, environmentId);
  if (row === null || row.verifiedAt === null) return null;
  return `${kind === "event" ? row.eventWord : row.accountWord}@${row.domain}`;
}

/** Sets the domain and its local parts, audited. Another domain starts unverified with a new token. Throws `invalid_input`. */
export async function saveSenderDomain(
  tx: Writer,
  change: Change,
  input: SenderDomainInput,
): Promise<SenderDomain> {
  const { environmentId } = change;
  const domain = readDomain(input.domain);
  const before = await findSenderDomain(tx, environmentId);
  const same = before?.domain === domain ? before : null;
  const row: SenderDomain = {
    environmentId,
    domain,
    verificationToken: same?.verificationToken ?? randomBytes(24).toString("base64url"),
    verifiedAt: same?.verifiedAt ?? null,
    checkedAt: same?.checkedAt ?? null,
    eventWord: readWord("eventWord", input.eventWord ?? before?.eventWord ?? "event"),
    accountWord: readWord("accountWord", input.accountWord ?? before?.accountWord ?? "account"),
  };
  if (before === null) await SENDER_DOMAIN.insert(tx, row);
  else await SENDER_DOMAIN.update(tx, row);
  await auditDomain(tx, change, before, row);
  return row;
}

/** Removes the domain, audited. Mail can no longer be sent. */
export async function removeSenderDomain(tx: Writer, change: Change): Promise<void> {
  const before = await findSenderDomain(tx, change.environmentId);
  if (before === null) return;
  await SENDER_DOMAIN.delete(tx, before);
  await auditDomain(tx, change, before, null);
}

/**
 * Looks up the TXT record and stores whether the domain is verified. If DNS does not answer, nothing changes. Returns the domain and one
 * sentence. Throws `not_found` if no domain is set.
 */
export async function verifySenderDomain(
  store: Store,
  deps: { resolveTxt: TxtResolver; clock: Clock },
  change: Omit<Change, "nowMs">,
): Promise<{ domain: SenderDomain; message: string }> {
  const { environmentId } = change;
  const sentence = "No sender domain is set in this environment: set one with relay domain set <domain>.";
  const row = await store.read((tx) => SENDER_DOMAIN.require(tx, { environmentId }, sentence));
  const name = recordName(row.domain);
  const found = await deps.resolveTxt(name).catch(() => null);
  if (found === null) {
    return { domain: row, message: `DNS did not answer for ${name}: nothing was changed; retry later.` };
  }
  const verified = found.some((text) => text.trim() === recordValue(row.verificationToken));
  const nowMs = deps.clock.now();
  const domain = await store.write("dashboard", (tx) =>
    recordCheck(tx, { ...change, nowMs }, row, verified ? (row.verifiedAt ?? nowMs) : null),
  );
  const message = verified
    ? `${row.domain} is verified: mail goes out from it.`
    : `The TXT record ${name} does not have the expected value yet: add it at the DNS provider of the domain; DNS can take an hour to show it.`;
  return { domain, message };
}

/** Stores the result of a check, unless the domain changed during the DNS lookup. */
async function recordCheck(
  tx: Writer,
  change: Change,
  row: SenderDomain,
  verifiedAt: number | null,
): Promise<SenderDomain> {
  const current = await findSenderDomain(tx, change.environmentId);
  if (current?.verificationToken !== row.verificationToken) return current ?? row;
  const after: SenderDomain = { ...current, verifiedAt, checkedAt: change.nowMs };
  await SENDER_DOMAIN.update(tx, after);
  if ((verifiedAt === null) !== (current.verifiedAt === null)) await auditDomain(tx, change, current, after);
  return after;
}

async function auditDomain(
  tx: Writer,
  change: Change,
  before: SenderDomain | null,
  after: SenderDomain | null,
): Promise<void> {
  await writeAudit(tx, {
    ...change,
    action: after === null ? "sender_domain.removed" : "sender_domain.changed",
    target: `sender_domain:${(after ?? before)?.domain}`,
    before: before === null ? null : viewSenderDomain(before),
    after: after === null ? null : viewSenderDomain(after),
  });
}

function recordName(domain: string): string {
  return `_relay-service.${domain}`;
}

function recordValue(token: string): string {
  return `relay-service-verification=${token}`;
}

function readDomain(text: string): string {
  const domain = domainToASCII(text.trim().replace(/\.$/, "")).toLowerCase();
  const labels = domain.split(".");
  const last = labels.at(-1) ?? "";
  const fits = domain.length <= 200 && labels.length >= 2 && labels.every((label) => LABEL.test(label));
  if (fits && !/^\d+$/.test(last)) return domain;
  throw new Refusal(
    "invalid_input",
    "`domain` is not a domain: write one such as example.com, without https:// and without @.",
  );
}

function readWord(name: string, text: string): string {
  const word = text.trim().toLowerCase();
  if (WORD.test(word)) return word;
  throw new Refusal(
    "invalid_input",
    `\`${name}\` is not valid before the @: write letters, digits, dots, hyphens, plus signs or underscores, at most 63.`,
  );
}

const TIMEOUT_MS = 3_000;
const TRIES = 2;
const NO_RECORD: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"]);

export const resolveTxt: TxtResolver = async (name) => {
  try {
    const records = await new Resolver({ timeout: TIMEOUT_MS, tries: TRIES }).resolveTxt(name);
    return records.map((strings) => strings.join(""));
  } catch (error) {
    if (NO_RECORD.has((error as { code?: string }).code ?? "")) return [];
    throw error;
  }
};
