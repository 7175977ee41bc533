/**
 * Sends an event as the provider would send it (`relay send`), signed with the relay's own recipe and secret. It posts the event to the
 * real receiver URL, and writes nothing to the store directly.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { toRefusalCode } from "../../../base/code/refusal-code.ts";
import { isJsonObject, type Json, type JsonObject, parseJson, writeJson } from "../../../base/json.ts";
import { plain } from "../../../base/text.ts";
import type { Draft } from "../../../insight/simulate/draft.ts";
import { makeSampleEvent, type SampleEvent } from "../../../insight/simulate/sample.ts";
import { definitionPath, readDefinitionFile } from "../../../operator/sync/definition-file.ts";
import { readJsonFile } from "../../../operator/sync/json-file.ts";
import { errorCode } from "../../../platform/outbound/error-code.ts";
import { readLocalSecrets, readServerSecrets, SECRETS_FILE } from "../../../platform/secret/local-secrets.ts";
import { findRelay } from "../../../rules/relay/relay.ts";
import { sourceNameOf } from "../../../rules/relay/source.ts";
import type { Trigger } from "../../../rules/trigger/registry.ts";
import { bindScheme } from "../../../rules/verify/registry.ts";
import { fetchFrom } from "../api/remote.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import {
  APP,
  ENVIRONMENT,
  JSON_OUTPUT,
  readNearUrl,
  readRunningUrl,
  withEnvironment,
} from "../data-directory.ts";
import type { Io } from "../io.ts";
import { docsOf, pointersOf, writeCodeLine } from "../refusal-text.ts";
import { BASE_URL, DATA, readBaseUrl, readDataDir, readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { makeHandshakeCall, type SendTarget } from "./send-handshake.ts";
import { explainHere, hasDatabase, sendHere, waitForEvent } from "./send-local.ts";

const TIMEOUT_MS = 15_000;

/** The next step for each refusal code. */
const NEXT: Readonly<Record<string, string>> = {
  bad_signature:
    "The secret is not the secret of the relay: check service/.secrets.json, or set RELAY_SECRET to the current one.",
  unknown_receiver: "This app has no receiver with this name: relay apps list shows the apps.",
  receiver_capped: "Wait a minute and send again.",
  source_capped: "Wait a minute and send again.",
};

export const send: Command = {
  words: ["send"],
  summary: "send a signed example event, or explain it",
  details:
    "The command sends the event to the relay's receiver URL. It makes the body from the relay's map and when, or reads it with --data. It reads the secret from service/.secrets.json. For a server, set RELAY_SECRET or use standard input. In local development, a relay with a schedule gets one tick, marked as a test. A relay with a data_change trigger gets a record in its collection. With --explain, the command shows each step, and writes, mails and calls nothing. With --file it explains a definition before it is saved.",
  arguments: [{ name: "name", help: "the name of the relay", of: "relay" }],
  options: [
    { name: "explain", help: "show each step without any effect, instead of sending" },
    {
      name: "file",
      value: "<file>",
      help: "with --explain: use this definition, which need not be saved",
      of: "file",
    },
    { name: "handshake", help: "send the handshake of the sender's URL registration, instead of an event" },
    { name: "event", value: "<id>", help: "with --explain: use this stored event as the body" },
    {
      name: "data",
      value: "<file|->",
      help: "the body or record to send, from a file or standard input",
      of: "file",
    },
    {
      name: "person",
      value: "<value>",
      help: "the person in the example body, or the owner of the example record",
    },
    { name: "secret-stdin", help: "read the secret or private key from standard input" },
    { name: "url", value: "<url>", otherwise: "the running service's", help: "the receiver URL" },
    JSON_OUTPUT,
    APP,
    ENVIRONMENT,
    BASE_URL,
    SERVICE_DIR,
    ...DATA,
  ],
  examples: [
    "relay send checkout-completed",
    "relay send checkout-completed --data event.json",
    "relay send checkout-completed --explain",
    "relay send refunds --explain --file service/relays/refunds.json --data refund.json",
    "relay send chat-events --handshake",
    "RELAY_SECRET=… relay send checkout --url https://relay.example.com/hooks/shop/checkout",
  ],
  async run(input, io) {
    const name = input.first();
    if (input.on("explain")) {
      const draft = await readDraft(name, input, io);
      return await explainHere(name, draft, await readGiven(input, io), input, io);
    }
    for (const option of ["event", "file"]) {
      if (input.text(option) !== null)
        throw new CommandFailure(
          "invalid_input",
          `--${option} works only with --explain: add --explain, or leave --${option} out.`,
        );
    }
    const trigger = (await findStored(name, input, io))?.trigger ?? null;
    if (trigger !== null && trigger.kind !== "receiver") {
      const { eventId, environmentId } = await sendHere(name, await readGiven(input, io), input, io);
      return await waitForEvent(eventId, environmentId, input, io);
    }
    if (input.on("handshake")) return await askHere(name, input, io);
    const target = await findSendTarget(name, input, io);
    const event = await readEvent(target, input, io);
    const response = await post(target, event, io);
    const text = await response.text();
    const body = readBody(text);
    const refusal = response.ok ? null : readRefusal(body, input, io);
    io.print(input.on("json") ? writeJson({ ...refusal, status: response.status, body }, 2) : text);
    if (!input.on("json")) io.inform(`${response.status} from ${target.url}`);
    return await explain(response, body, name, target, input, io);
  },
};

/** Finds the receiver URL and the secret. Fails if one of them cannot be found. */
async function findSendTarget(name: string, input: Input, io: Io): Promise<SendTarget> {
  const stored = await findStored(name, input, io);
  const trigger = stored?.trigger ?? (await readFileTrigger(name, input, io));
  const source = sourceNameOf({ trigger });
  if (source !== null && source !== name && trigger.kind === "receiver") {
    const target = await findSendTarget(source, input, io);
    return { ...target, source, trigger: { ...trigger, verify: target.trigger.verify } };
  }
  if (trigger.kind !== "receiver") {
    throw new CommandFailure(
      "invalid_input",
      `The relay ${name} has the trigger ${trigger.kind}, and receives no requests: there is nothing to send.`,
    );
  }
  return {
    trigger,
    url: chooseUrl(name, stored?.appId ?? input.text("app"), input, io),
    secret: await readSecret(name, stored, input, io),
    environmentId: stored?.environmentId ?? null,
  };
}

/** Finds the relay in the data directory, which has the definition that the service verifies against. */
async function findStored(name: string, input: Input, io: Io) {
  if (!hasDatabase(input, io)) return null;
  return await withEnvironment(input, io, async (store, { id: environmentId, appId, name: environment }) => {
    const row = await store.read((tx) => findRelay(tx, environmentId, name));
    return row === null ? null : { trigger: row.definition.trigger, appId, environmentId, environment };
  });
}

async function readFileTrigger(name: string, input: Input, io: Io): Promise<Trigger> {
  const path = definitionPath(readServiceDir(input, io), name);
  if (!existsSync(path)) {
    throw new CommandFailure(
      "not_found",
      `There is no relay ${name} in the database or at ${path}: check the name.`,
    );
  }
  const file = await readDefinitionFile(path);
  if (file.ok) return file.definition.trigger;
  throw new CommandFailure("invalid_definition", `${path} is not valid: relay validate shows the problems.`);
}

function chooseUrl(name: string, appId: string | null, input: Input, io: Io): string {
  const given = input.text("url");
  if (given !== null) return given;
  const baseUrl = readBaseUrl(input) ?? readRunningUrl(readDataDir(input, io));
  if (baseUrl === null) {
    throw new CommandFailure(
      "service_not_running",
      "No service runs here: start it with relay dev, or name the receiver URL with --url.",
    );
  }
  if (appId === null)
    throw new CommandFailure(
      "invalid_input",
      "The app is unknown: name it with --app, or give the whole receiver URL with --url.",
    );
  return `${baseUrl}/hooks/${appId}/${name}`;
}

async function readSecret(
  name: string,
  stored: { appId: string; environment: string } | null,
  input: Input,
  io: Io,
): Promise<string> {
  if (input.on("secret-stdin")) return (await io.readInput()).trim();
  const given = io.env.RELAY_SECRET;
  if (given !== undefined && given !== "") return given;
  const serviceDir = readServiceDir(input, io);
  const isServer = stored !== null && stored.environment !== "local";
  const dataDir = readDataDir(input, io);
  const places = [readRunningUrl(dataDir), readNearUrl(dataDir)].flatMap((url) =>
    url === null ? [] : `${url}/${stored?.appId}/${stored?.environment}`,
  );
  const made = isServer ? (await readServerSecrets(serviceDir, places)).get(name) : undefined;
  const secret = (made ?? (await readLocalSecrets(serviceDir)).get(name))?.receiverSecret;
  if (secret !== undefined) return secret;
  const where = isServer && places[0] !== undefined ? ` under ${places[0]}` : "";
  throw new CommandFailure(
    "invalid_input",
    `The secret of ${name} is not in ${join(serviceDir, SECRETS_FILE)}${where}: set RELAY_SECRET, use --secret-stdin, or send a test event from the page of the relay in the dashboard.`,
  );
}

/** Reads the definition of --file, and the secret that is given with it. Returns null without the option. */
async function readDraft(name: string, input: Input, io: Io): Promise<Draft | null> {
  const given = input.text("file");
  if (given === null) return null;
  const path = resolve(io.cwd, given);
  const file = await readJsonFile(path);
  if (!file.ok)
    throw new CommandFailure(
      "invalid_definition",
      `${given}: ${file.problems[0]?.message ?? "it cannot be read"}`,
    );
  const named = isJsonObject(file.value) ? file.value.name : undefined;
  if (typeof named === "string" && named !== name)
    throw new CommandFailure(
      "invalid_input",
      `${given} has the relay ${plain(named)}, not ${name}: write relay send ${plain(named)} --explain --file ${given}.`,
    );
  const secret = input.on("secret-stdin") ? (await io.readInput()).trim() : (io.env.RELAY_SECRET ?? "");
  return { definition: file.value, secret: secret === "" ? null : secret };
}

/** Reads the content of --data. Returns null without the option. */
async function readGiven(input: Input, io: Io): Promise<{ body: string; contentType: string } | null> {
  const data = input.text("data");
  if (data === null) return null;
  const { body, contentType } = await readData(data, io);
  return { body: Buffer.from(body).toString("utf8"), contentType };
}

async function readEvent(target: SendTarget, input: Input, io: Io): Promise<SampleEvent> {
  const data = input.text("data");
  if (data === null) return await makeSampleEvent(target.trigger, input.text("person"));
  if (data === "-" && input.on("secret-stdin")) {
    throw new CommandFailure(
      "invalid_input",
      "--data - and --secret-stdin both read standard input: set RELAY_SECRET instead of --secret-stdin.",
    );
  }
  return await readData(data, io);
}

async function readData(data: string, io: Io): Promise<SampleEvent> {
  const file = resolve(io.cwd, data);
  const body = data === "-" ? Buffer.from(await io.readInput()) : await readDataFile(file);
  const isJson = /^\s*[[{]/.test(body.toString("utf8", 0, 100));
  return { body, contentType: isJson ? "application/json" : "application/x-www-form-urlencoded" };
}

async function readDataFile(file: string): Promise<Buffer> {
  return await readFile(file).catch((error: Error) => {
    throw new CommandFailure(
      "file_unusable",
      `--data ${file} cannot be read (${error.message}): name a file that exists.`,
    );
  });
}

/** Sends the relay's handshake. Returns the exit code. */
async function askHere(name: string, input: Input, io: Io): Promise<number> {
  const target = await findSendTarget(name, input, io);
  const { url, init } = await makeHandshakeCall(name, target, input, io);
  const response = await call(url, init);
  const text = await response.text();
  io.print(input.on("json") ? writeJson({ status: response.status, body: readBody(text) }, 2) : text);
  io.inform(`${response.status} from ${target.url}`);
  if (response.ok) {
    io.inform("The handshake was answered. relay requests list shows it.");
    return 0;
  }
  const { code } = readRefusal(readBody(text), input, io);
  io.inform(NEXT[code] ?? "The handshake was not answered. relay requests list shows the cause.");
  io.inform(writeCodeLine(code, pointersOf(input), io));
  return 1;
}

async function post(target: SendTarget, event: SampleEvent, io: Io): Promise<Response> {
  const { trigger, url, secret } = target;
  const scheme = bindScheme(trigger.verify);
  if (scheme === null)
    throw new CommandFailure(
      "invalid_input",
      `The scheme ${trigger.verify.scheme} is unknown: save the relay again.`,
    );
  const draft = { ...event, receiverUrl: url, nowMs: io.clock.now() };
  const signed = scheme.sign(secret, draft);
  return await call(`${url}${signed.search}`, {
    method: "POST",
    headers: signed.headers,
    body: signed.body as BodyInit,
  });
}

async function call(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetchFrom(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    throw new CommandFailure(
      "service_not_running",
      `Nothing answered at ${url} (${errorCode(error)}): start the service with relay dev, or name the receiver URL with --url.`,
    );
  }
}

/** Reads a receiver's refusal, and where its code is explained. */
function readRefusal(body: Json, input: Input, io: Io) {
  const { code: given, message } = isJsonObject(body) ? body : {};
  const code = toRefusalCode(given);
  return {
    code,
    message: String(message ?? ""),
    docs: docsOf(code, pointersOf(input), io),
  };
}

/** Explains the answer. If the data directory has the relay, it also reports the event's result. Returns the exit code. */
async function explain(
  response: Response,
  body: Json,
  name: string,
  target: SendTarget,
  input: Input,
  io: Io,
): Promise<number> {
  const answer = isJsonObject(body) ? body : {};
  if (!response.ok) {
    const code = toRefusalCode(answer.code);
    io.inform(NEXT[code] ?? "The event was rejected. The response above says why.");
    io.inform(writeCodeLine(code, pointersOf(input), io));
    return 1;
  }
  if (answer.ignored === "when") {
    io.inform(
      "The relay's `when` does not match this body, so no event was stored. To see which condition differs: relay requests list --outcome ignored.",
    );
    return 0;
  }
  if (answer.duplicate === true) {
    io.inform(
      Object.hasOwn(target.trigger.map, "event_id")
        ? "An event with this id was received before, so nothing runs. Send another event_id."
        : "The same body was received before on this day (UTC), so nothing runs. Send another body, or add event_id to the relay's map.",
    );
    return 0;
  }
  const id = findEventId(answer, name);
  const source = target.source ?? name;
  if (source !== name && !hasEvent(answer, name)) {
    io.inform(
      `${source} received the request, but ${name} created no event: the relay is not saved, or its \`when\` does not match. See relay relays show ${name}.`,
    );
    return 0;
  }
  if (target.environmentId === null || !hasDatabase(input, io)) {
    io.inform(`The event is stored as ${id}. The dashboard shows what it did.`);
    return 0;
  }
  const followers = name === source ? listEvents(answer).filter(({ relay }) => relay !== name) : [];
  const code = await waitForEvent(id, target.environmentId, input, io, followers.length === 0 ? null : name);
  for (const { relay, eventId } of followers)
    await waitForEvent(eventId, target.environmentId, input, io, relay);
  return code;
}

/** Lists the events of the receiver and its followers, as the response names them. */
function listEvents({ events }: JsonObject): { relay: string; eventId: string }[] {
  return (Array.isArray(events) ? events : []).flatMap((one) =>
    isJsonObject(one) && typeof one.relay === "string" && typeof one.eventId === "string"
      ? [{ relay: plain(one.relay), eventId: one.eventId }]
      : [],
  );
}

/** Returns the id of the relay's event. If other relays follow the receiver, the response lists the events of all. */
function findEventId(answer: JsonObject, name: string): string {
  const id = listEvents(answer).find(({ relay }) => relay === name)?.eventId ?? answer.eventId;
  return typeof id === "string" ? id : "";
}

function hasEvent(answer: JsonObject, name: string): boolean {
  return listEvents(answer).some(({ relay }) => relay === name);
}

function readBody(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
