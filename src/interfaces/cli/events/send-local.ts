/**
 * Runs `relay send` without a request over HTTP. It explains what the relay would do, without any effect. In local development it also
 * sends a schedule's tick, or writes a record that a record-change relay watches. It marks both as a test.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "../../../base/clock.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../../base/json.ts";
import { DEFAULT_LIMITS } from "../../../base/limit.ts";
import { createLog } from "../../../base/log.ts";
import { plain } from "../../../base/text.ts";
import { FINAL_STATES } from "../../../engine/event/event.ts";
import { listEvents } from "../../../engine/event/list.ts";
import { findEventView } from "../../../engine/event/view.ts";
import { type Draft, simulateDraft } from "../../../insight/simulate/draft.ts";
import { simulateRelay } from "../../../insight/simulate/simulate.ts";
import type { SimulateInput, Simulation } from "../../../insight/simulate/step.ts";
import { writeTestTick } from "../../../insight/simulate/test-event.ts";
import { writeTestRecord } from "../../../insight/simulate/test-record.ts";
import { COMMAND_LINE, formatActor } from "../../../platform/account/api-key.ts";
import type { Environment } from "../../../platform/account/environment.ts";
import { type LiveRelay, LiveRelays } from "../../../rules/relay/live-relay.ts";
import type { DataChangeTrigger } from "../../../rules/trigger/data-change.ts";
import type { Store } from "../../../store/port.ts";
import { CommandFailure, type Input } from "../command.ts";
import { openSealerHere, readRunningUrl, withEnvironment, withStore } from "../data-directory.ts";
import { type Io, programWord } from "../io.ts";
import { readBaseUrl, readDataDir } from "../service-option.ts";
import { expandEventId } from "../terminal/id-suffix.ts";
import { pagesOf } from "../terminal/listing.ts";
import { writeOutcome } from "./text.ts";

/** The data to send: the text of `--data`, or null for an example. */
type Given = Pick<SimulateInput, "body" | "contentType"> | null;

const BY = "relay send";
const LOOK_EVERY_MS = 50;
const GIVE_UP_MS = 12_000;

function findEventId(store: Store, environmentId: number, text: string): Promise<string> {
  const pages = pagesOf(store, (tx, part) => listEvents(tx, environmentId, {}, part));
  return expandEventId(text, pages);
}

/**
 * Explains what the relay or its draft would do, and shows it. Returns exit code 1 if the relay would refuse the request or an action would fail.
 */
export async function explainHere(
  name: string,
  draft: Draft | null,
  given: Given,
  input: Input,
  io: Io,
): Promise<number> {
  const explanation = await withRelays(input, io, async (house, environment) => {
    const relay = (await house.relays.current()).relays.find(
      (one) => one.environmentId === environment.id && one.name === name,
    );
    const kind = draft === null ? relay?.definition.trigger.kind : readTriggerKind(draft.definition as Json);
    const record = kind === "data_change" && given?.body !== undefined;
    const [named, person] = [input.text("event"), input.text("person")];
    const event = named === null ? null : await findEventId(house.store, environment.id, named);
    const asked: SimulateInput = {
      ...(record ? { record: readRecord(given.body ?? "") } : given),
      ...(event === null ? {} : { event }),
      ...(person === null ? {} : { person }),
    };
    if (draft === null) return await simulateRelay(house, environment.id, name, asked);
    const { sealer, clock, limits } = house;
    const context = {
      environment,
      actor: COMMAND_LINE,
      nowMs: clock.now(),
      limits,
      sealer,
      baseUrl: house.baseUrl,
    };
    return await simulateDraft(house, context, draft, asked);
  });
  io.print(input.on("json") ? writeJson(explanation, 2) : writeExplanation(explanation));
  return explanation.would === "refuse" || explanation.would === "fail" ? 1 : 0;
}

function readTriggerKind(definition: Json): Json | undefined {
  const trigger = isJsonObject(definition) ? definition.trigger : undefined;
  return trigger !== undefined && isJsonObject(trigger) ? trigger.kind : undefined;
}

const MARKS = { ok: "ok", stops: "STOP", unknown: "?" } as const;

function writeExplanation({ steps, would, message, warnings }: Simulation): string {
  const lines = steps.flatMap(({ step, outcome, reached, message: text, detail }) => [
    `${MARKS[outcome].padEnd(5)}${step.padEnd(12)}${plain(text)}${reached || outcome === "unknown" ? "" : " (not reached)"}`,
    ...showDetail(step, detail).map((line) => `     ${" ".repeat(12)}${plain(line)}`),
  ]);
  const warned = warnings.map((warning) => `${"warn".padEnd(5)}${plain(warning)}`);
  return [
    ...lines,
    ...warned,
    `Would ${would}: ${plain(message)}`,
    "Nothing was written, mailed or called.",
  ].join("\n");
}

/** Selects the lines of a detail that a reader needs. --json shows all of it. */
function showDetail(step: Simulation["steps"][number]["step"], detail: Json): string[] {
  if (step === "signed_text" && isJsonObject(detail)) return [String(detail.text)];
  if ((step === "map" || step === "parts") && Array.isArray(detail)) return detail.map(showPart);
  if (step !== "action" || !isJsonObject(detail)) return [];
  const { rendered = null, sends = null } = detail;
  return [...(rendered === null ? [] : [writeJson(rendered)]), ...showSent(sends)];
}

/** Shows a call as it would be sent, and other content as JSON. */
function showSent(sends: Json): string[] {
  if (sends === null) return [];
  if (!isJsonObject(sends) || !isJsonObject(sends.headers ?? null)) return [writeJson(sends)];
  const { method, url, headers, body, exampleSecret } = sends;
  return [
    `${method} ${url}`,
    ...Object.entries(headers as JsonObject).map(([name, value]) => `${name}: ${value}`),
    String(body),
    `signed with the example secret ${exampleSecret}`,
  ];
}

/** Formats a mapped name with its value, or the place and the form of a part. */
function showPart(one: Json): string {
  if (!isJsonObject(one)) return writeJson(one);
  const { name, path, found, value = null, part, ...place } = one;
  if (part === undefined)
    return `${name} (${path}) ${found === true ? `is ${writeJson(value)}` : "finds nothing"}`;
  const where = Object.entries(place).map(([key, text]) => `${key} ${text}`);
  return `${part}: ${where.join(", ")}`;
}

/** Triggers a relay that waits for no request, in local development only. Returns the id of its event. */
export async function sendHere(
  name: string,
  given: Given,
  input: Input,
  io: Io,
): Promise<{ eventId: string; environmentId: number }> {
  return await withRelays(input, io, async ({ store, relays }, environment) => {
    const relay = (await relays.current()).relays.find(
      (one) => one.environmentId === environment.id && one.name === name,
    );
    if (relay === undefined)
      throw new CommandFailure(
        "not_found",
        `There is no relay ${name} here: relay relays list shows the names.`,
      );
    const { trigger } = relay.definition;
    if (!relay.local) {
      throw new CommandFailure(
        "invalid_input",
        `The relay ${name} has the trigger ${trigger.kind}, which can be sent in local development only. To see what the relay would do here: ${programWord(io)} send ${name} --explain.`,
      );
    }
    const environmentId = environment.id;
    const eventId =
      trigger.kind === "data_change"
        ? await sendRecord(store, relay, trigger, given, input, io)
        : await sendTick(store, relay, io);
    return { eventId, environmentId };
  });
}

async function sendTick(store: Store, relay: LiveRelay, io: Io): Promise<string> {
  const nowMs = io.clock.now();
  const change = { environmentId: relay.environmentId, by: formatActor(COMMAND_LINE), nowMs };
  return await store.write("app", (tx) => writeTestTick(tx, relay, change));
}

async function sendRecord(
  store: Store,
  relay: LiveRelay,
  trigger: DataChangeTrigger,
  given: Given,
  input: Input,
  io: Io,
): Promise<string> {
  const nowMs = io.clock.now();
  const person = input.text("person");
  const data = given?.body === undefined ? null : readRecord(given.body);
  const { recordId, change } = await store.write("app", (tx) =>
    writeTestRecord(tx, relay, trigger, { person, data, by: BY, nowMs }),
  );
  io.inform(
    change === "deleted"
      ? `Wrote a record in ${trigger.collection} and deleted it.`
      : `Wrote the record ${recordId} in ${trigger.collection}, by ${BY}. It stays there until you delete it.`,
  );
  return await awaitEvent(store, relay, recordId, io);
}

/** Waits for the relay's event about the record, and returns its id. */
async function awaitEvent(store: Store, relay: LiveRelay, recordId: string, io: Io): Promise<string> {
  const begun = io.clock.monotonicMs();
  const { environmentId, name } = relay;
  const page = { limit: 10, after: null };
  for (;;) {
    const found = await store.read(async (tx) => {
      for (const { id } of (await listEvents(tx, environmentId, { relay: name }, page)).items) {
        const payload = (await findEventView(tx, environmentId, id))?.payload ?? null;
        const record = isJsonObject(payload) && isJsonObject(payload.record ?? null) ? payload.record : null;
        if (isJsonObject(record) && record.id === recordId) return id;
      }
      return null;
    });
    if (found !== null) return found;
    if (io.clock.monotonicMs() - begun > GIVE_UP_MS) {
      throw new CommandFailure(
        "service_not_running",
        `The record was written, but it created no event of ${name}. Check that the service runs (relay dev), and that the record matches the trigger's where.`,
      );
    }
    await sleep(io.clock, LOOK_EVERY_MS);
  }
}

function readRecord(text: string): JsonObject {
  const value = ((): Json => {
    try {
      return parseJson(text);
    } catch {
      return null;
    }
  })();
  if (isJsonObject(value)) return value;
  throw new CommandFailure(
    "invalid_input",
    '--data is not a JSON object: write the fields of the record, such as { "status": "paid" }.',
  );
}

async function withRelays<Result>(
  input: Input,
  io: Io,
  work: (
    house: Parameters<typeof simulateRelay>[0] & { baseUrl: string },
    environment: Environment,
  ) => Promise<Result>,
): Promise<Result> {
  return await withEnvironment(input, io, async (store, environment) => {
    const { clock } = io;
    const dataDir = readDataDir(input, io);
    const sealer = await openSealerHere(store, input, io);
    const url = readBaseUrl(input) ?? readRunningUrl(dataDir) ?? "http://127.0.0.1";
    const log = createLog({ clock, format: "text", sink: (line) => io.inform(line) });
    const relays = new LiveRelays({ store, sealer, baseUrl: () => url });
    const house = { store, sealer, clock, log, limits: DEFAULT_LIMITS, relays, baseUrl: url };
    return await work(house, environment);
  });
}

/** Waits for an event and returns the exit code: 1 if it failed, 0 if it is done or still waits. A name in `relay` starts the printed line. */
export async function waitForEvent(
  id: string,
  environmentId: number,
  input: Input,
  io: Io,
  relay: string | null = null,
): Promise<number> {
  const start = relay === null ? "" : `${relay}: `;
  const begun = io.clock.monotonicMs();
  return await withStore(input, io, async (store) => {
    for (;;) {
      const event = await store.read((tx) => findEventView(tx, environmentId, id));
      const settled = event !== null && (FINAL_STATES.has(event.state) || event.nextAttemptAt !== null);
      if (event?.waits?.for === "hold" || event?.waits?.for === "pause") {
        io.inform(`${start}${id} is stored and waits. ${plain(event.waits.message)}`);
        return 0;
      }
      if (event !== null && settled) {
        io.inform(`${start}${writeOutcome(event)}. More: ${programWord(io)} events show ${id}`);
        return event.state === "done" ? 0 : 1;
      }
      if (io.clock.monotonicMs() - begun > GIVE_UP_MS) {
        io.inform(
          `${start}${id} is stored and has not ended yet. More: ${programWord(io)} events show ${id}`,
        );
        return 0;
      }
      await sleep(io.clock, LOOK_EVERY_MS);
    }
  });
}

/** Reports whether the data directory has a SQLite database. */
export function hasDatabase(input: Input, io: Io): boolean {
  return existsSync(join(readDataDir(input, io), "relay.db"));
}
