/**
 * Alert channels of an environment: where alerts go in addition to mail. Secret fields are sealed, and only their fingerprints are shown. Each
 * change is audited. Fields are checked by the data of their kind, and addresses by the rules of call_url.
 */
import { type Static, Type } from "typebox";
import { newId } from "../../base/id.ts";
import type { JsonObject } from "../../base/json.ts";
import { Refusal, rejectField } from "../../base/refusal.ts";
import { fields, oneOf, orNull, show, textOrNull, time, timeOrNull } from "../../base/schema.ts";
import { breaksOneLine, cutToLine } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import {
  bytes,
  defineTable,
  integer,
  json,
  orNull as nullable,
  type RowOf,
  text,
} from "../../store/table.ts";
import { ALERT_CODES, type AlertCode } from "../audit/alert.ts";
import { type Change, writeAudit } from "../audit/audit.ts";
import { clearProblemsOf } from "../audit/problem.ts";
import { checkCallUrl, isLocalOnlyUrl, mayBeAllowed } from "../outbound/call-target.ts";
import type { Sealer } from "../secret/seal.ts";
import { mintSigningSecret } from "../secret/secret-text.ts";
import { CHANNEL_KIND_NAMES, CHANNEL_KINDS, type ChannelField, type ChannelKind } from "./channel-kind.ts";

const MAX_CHANNELS = 20;
const MAX_NAME_CHARS = 60;
const MAX_FIELD_CHARS = 2_000;

/** The codes that channels carry. The message that an alert is resolved also says that a relay recovered. */
export const CHANNEL_CODES = ALERT_CODES.filter((code) => code !== "relay_recovered");

type Texts = Record<string, string>;

const CHANNEL = defineTable({
  name: "alert_channel",
  key: ["id"],
  topic: "alert",
  columns: {
    id: text(),
    environmentId: integer(),
    kind: text(),
    name: text(),
    codes: nullable(json<AlertCode[]>()),
    fields: json<Texts>(),
    fingerprints: json<Texts>(),
    secret: bytes(),
    createdAt: integer(),
    triedAt: nullable(integer()),
    result: nullable(text()),
    failingAt: nullable(integer()),
    failures: integer(),
    retryAt: nullable(integer()),
  },
});

export type Channel = RowOf<typeof CHANNEL>;

export const channelView = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  name: Type.String(),
  /** The codes of the alerts that go to it; null: all. */
  codes: orNull(Type.Array(Type.String())),
  fields: Type.Record(Type.String(), Type.String()),
  /** The fingerprints of the secret fields. */
  fingerprints: Type.Record(Type.String(), Type.String()),
  createdAt: time,
  triedAt: timeOrNull,
  /** The answer of the service to the last request. */
  result: textOrNull,
  failingAt: timeOrNull,
});
export type ChannelView = Static<typeof channelView>;

export const channelKindView = Type.Object({
  kind: Type.String(),
  title: Type.String(),
  /** True if Relay makes a secret that signs the requests, and shows it once. */
  signs: Type.Boolean(),
  fields: Type.Array(
    Type.Object({
      name: Type.String(),
      title: Type.String(),
      help: Type.String(),
      isSecret: Type.Boolean(),
      isRequired: Type.Boolean(),
      example: Type.String(),
    }),
  ),
});
export type ChannelKindView = Static<typeof channelKindView>;

const given = {
  name: Type.Optional(Type.String({ maxLength: 4 * MAX_NAME_CHARS, description: "a name of one line" })),
  codes: Type.Optional(
    orNull(
      Type.Array(oneOf(CHANNEL_CODES), {
        minItems: 1,
        maxItems: CHANNEL_CODES.length,
        description: "a list of alert codes, or null for all",
      }),
    ),
  ),
  fields: Type.Optional(
    Type.Record(Type.String({ maxLength: 40 }), Type.String({ maxLength: MAX_FIELD_CHARS }), {
      maxProperties: 10,
      description: "an object with the fields of the kind",
    }),
  ),
};

export const newChannelInput = fields({ kind: oneOf(CHANNEL_KIND_NAMES), ...given });
/** A change: absent parts stay, and so does a field that is absent in `fields`. */
export const channelInput = fields(given);

interface ChannelDeps {
  sealer: () => Sealer;
  /** Local development. */
  local: boolean;
  ownHosts: readonly string[];
  /** Private hosts that the operator allows. */
  allowPrivate: readonly string[];
}

/** Lists the kinds with the fields that a user gives. */
export function listChannelKinds(): ChannelKindView[] {
  return Object.entries(CHANNEL_KINDS).map(([kind, { title, signs, fields }]) => ({
    kind,
    title,
    signs,
    fields: fields.map(({ name, title, help, isSecret, otherwise, example }) => {
      return { name, title, help, isSecret, isRequired: otherwise === undefined, example };
    }),
  }));
}

export function viewChannel(row: Channel): ChannelView {
  return show(channelView, row);
}

/** Lists the channels of an environment, oldest first. */
export function listChannels(tx: Reader, environmentId: number): Promise<Channel[]> {
  return CHANNEL.all(tx, "WHERE environment_id = $environmentId ORDER BY id", { environmentId });
}

/** Lists the channels of every environment that may get a request now. */
export function listDueChannels(tx: Reader, nowMs: number, maxWaitMs: number): Promise<Channel[]> {
  // A time far ahead was set before the clock was set back.
  const rest = "WHERE retry_at IS NULL OR retry_at <= $nowMs OR retry_at > $untilMs ORDER BY id";
  return CHANNEL.all(tx, rest, { nowMs, untilMs: nowMs + maxWaitMs });
}

/** Finds the channel. Throws `not_found`. */
export function requireChannel(tx: Reader, environmentId: number, id: string): Promise<Channel> {
  const sentence = `There is no alert channel ${cutToLine(id, MAX_NAME_CHARS)} in this environment: relay alerts channels lists them.`;
  return CHANNEL.require(tx, { environmentId, id }, sentence);
}

export function findKind({ kind }: Pick<Channel, "kind">): ChannelKind | null {
  return Object.hasOwn(CHANNEL_KINDS, kind) ? (CHANNEL_KINDS[kind] ?? null) : null;
}

/** The sentence about a channel whose secrets this server cannot read. */
export const SEALED_BY_ANOTHER =
  "Another master key sealed the secrets of this channel: remove the channel and add it again.";

/** Opens the secret values, which no text may contain. Null: another master key sealed them. */
export function openSecrets(sealer: Sealer, { id, secret }: Pick<Channel, "id" | "secret">): Texts | null {
  try {
    return JSON.parse(sealer.unseal(secret, contextOf(id))) as Texts;
  } catch {
    return null;
  }
}

/** Adds a channel, audited. `signingSecret` is the secret of a kind that signs, which is shown once. Throws `invalid_input`. */
export async function createChannel(
  tx: Writer,
  change: Change,
  input: Static<typeof newChannelInput>,
  deps: ChannelDeps,
): Promise<{ channel: Channel; signingSecret: string | null }> {
  const { environmentId, nowMs } = change;
  const existing = await listChannels(tx, environmentId);
  if (existing.length >= MAX_CHANNELS)
    throw new Refusal(
      "invalid_input",
      `The environment has ${MAX_CHANNELS} alert channels, which is the limit: remove one first.`,
    );
  const kind = CHANNEL_KINDS[input.kind] as ChannelKind;
  const signingSecret = kind.signs ? mintSigningSecret() : null;
  const values = readFields(kind, input.fields ?? {}, {}, deps);
  const id = newId("chn", nowMs);
  const channel: Channel = {
    id,
    environmentId,
    kind: input.kind,
    name: readName(input.name ?? kind.title),
    codes: input.codes ?? null,
    ...sealValues(deps.sealer(), id, kind, {
      ...values,
      ...(signingSecret === null ? {} : { signingSecret }),
    }),
    createdAt: nowMs,
    triedAt: null,
    result: null,
    failingAt: null,
    failures: 0,
    retryAt: null,
  };
  await CHANNEL.insert(tx, channel);
  await auditChannel(tx, change, null, channel);
  return { channel, signingSecret };
}

/** Changes a channel, audited. Its waiting alerts are sent within a minute. Throws `not_found` or `invalid_input`. */
export async function changeChannel(
  tx: Writer,
  change: Change,
  id: string,
  input: Static<typeof channelInput>,
  deps: ChannelDeps,
): Promise<Channel> {
  const before = await requireChannel(tx, change.environmentId, id);
  const kind = findKind(before);
  if (kind === null)
    throw new Refusal(
      "invalid_input",
      `The kind ${before.kind} is of a newer version: update Relay, or remove the channel.`,
    );
  const after: Channel = {
    ...before,
    name: input.name === undefined ? before.name : readName(input.name),
    codes: input.codes === undefined ? before.codes : input.codes,
    failures: 0,
    retryAt: null,
  };
  if (input.fields !== undefined) {
    const sealer = deps.sealer();
    const secrets = openSecrets(sealer, before);
    if (secrets === null) throw new Refusal("invalid_input", SEALED_BY_ANOTHER);
    const known = { ...before.fields, ...secrets };
    const values = readFields(kind, input.fields, known, deps);
    const { signingSecret } = known;
    const kept = signingSecret === undefined ? {} : { signingSecret };
    Object.assign(after, sealValues(sealer, id, kind, { ...values, ...kept }));
  }
  await CHANNEL.update(tx, after);
  await auditChannel(tx, change, before, after);
  return after;
}

/** Removes a channel with its problem, audited. Throws `not_found`. */
export async function removeChannel(tx: Writer, change: Change, id: string): Promise<void> {
  const before = await requireChannel(tx, change.environmentId, id);
  await CHANNEL.delete(tx, before);
  await clearProblemsOf(tx, change.environmentId, channelTarget(id), change.nowMs);
  await auditChannel(tx, change, before, null);
}

/** Stores the result of a request and when the next one may be sent. Returns whether the channel still exists. */
export async function storeResult(
  tx: Writer,
  channel: Pick<
    Channel,
    "id" | "environmentId" | "triedAt" | "result" | "failingAt" | "failures" | "retryAt"
  >,
): Promise<boolean> {
  const { id, environmentId, triedAt, result, failingAt, failures, retryAt } = channel;
  const changes = { triedAt, result, failingAt, failures, retryAt };
  return (await CHANNEL.change(tx, { id, environmentId }, changes)) > 0;
}

/** The target of the problem of a channel. */
export function channelTarget(id: string): string {
  return `channel:${id}`;
}

function contextOf(id: string): string {
  return `alert_channel:${id}`;
}

function sealValues(
  sealer: Sealer,
  id: string,
  kind: ChannelKind,
  values: Texts,
): Pick<Channel, "fields" | "fingerprints" | "secret"> {
  const isPlain = (name: string) => kind.fields.some((field) => field.name === name && !field.isSecret);
  const entries = Object.entries(values);
  const secrets = entries.filter(([name]) => !isPlain(name));
  return {
    fields: Object.fromEntries(entries.filter(([name]) => isPlain(name))),
    fingerprints: Object.fromEntries(secrets.map(([name, value]) => [name, sealer.fingerprint(value)])),
    secret: sealer.seal(JSON.stringify(Object.fromEntries(secrets)), contextOf(id)),
  };
}

function readName(name: string): string {
  const trimmed = name.trim();
  const why = breaksOneLine(trimmed);
  if (why === null && trimmed !== "" && cutToLine(trimmed, MAX_NAME_CHARS) === trimmed) return trimmed;
  throw rejectBecause(
    "name",
    `${why ?? `is empty or longer than ${MAX_NAME_CHARS} characters`}: write a name such as Ops.`,
  );
}

/** Checks the fields and returns them all. An empty text removes an optional field. A missing one keeps its known value. */
function readFields(
  kind: ChannelKind,
  input: Readonly<Texts>,
  known: Readonly<Texts>,
  deps: ChannelDeps,
): Texts {
  const names = kind.fields.map(({ name }) => name);
  const other = Object.keys(input).find((name) => !names.includes(name));
  if (other !== undefined)
    throw rejectBecause(
      `fields.${cutToLine(other, 40)}`,
      `is no field of ${kind.title}: its fields are ${names.join(", ")}.`,
    );
  const values: Texts = {};
  for (const field of kind.fields) {
    const value = readField(kind, field, input[field.name] ?? known[field.name] ?? "", deps);
    if (value !== null) values[field.name] = value;
  }
  return values;
}

function readField(kind: ChannelKind, field: ChannelField, given: string, deps: ChannelDeps): string | null {
  const value = given.trim() === "" ? (field.otherwise ?? "") : given.trim();
  if (value === "" && field.otherwise === null) return null;
  const path = `fields.${field.name}`;
  if (value === "")
    throw rejectBecause(path, `is missing, and ${kind.title} needs its ${field.title}. ${field.help}`);
  if (!new RegExp(`^(?:${field.pattern})$`).test(value))
    throw rejectBecause(
      path,
      `is not a valid ${field.title} of ${kind.title}: write one such as ${field.example}. ${field.help}`,
    );
  if (/^https?:/.test(value)) requireCallable(path, value, deps);
  return value;
}

/** Throws `invalid_input` for an address that call_url does not call either. Resolved addresses are checked at each request. */
function requireCallable(path: string, url: string, { local, ownHosts, allowPrivate }: ChannelDeps): void {
  const broken = checkCallUrl(url, { local, ownHosts });
  if (broken !== null) throw rejectBecause(path, `is refused: ${broken.message}`);
  if (local || !isLocalOnlyUrl(url) || mayBeAllowed(url, allowPrivate)) return;
  throw rejectBecause(
    path,
    "names a private host, and Relay calls only public ones, as call_url does: enter a public address, or ask the operator to allow this host with --allow-private (RELAY_ALLOW_PRIVATE).",
  );
}

/** `why` completes "`field` …". */
function rejectBecause(field: string, why: string): Refusal {
  return rejectField(field, `\`${field}\` ${why}`);
}

async function auditChannel(
  tx: Writer,
  change: Change,
  before: Channel | null,
  after: Channel | null,
): Promise<void> {
  const one = after ?? before;
  const action =
    after === null
      ? "alert_channel.removed"
      : before === null
        ? "alert_channel.created"
        : "alert_channel.changed";
  await writeAudit(tx, {
    ...change,
    action,
    target: `channel:${one?.id}`,
    before: before === null ? null : describe(before),
    after: after === null ? null : describe(after),
  });
}

function describe({ kind, name, codes, fields, fingerprints }: Channel): JsonObject {
  return { kind, name, codes, fields, fingerprints };
}
