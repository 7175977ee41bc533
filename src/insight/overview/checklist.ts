/**
 * Lists the steps between a saved relay and its first real event. A step is done because of something that happened: a request arrived, a request
 * verified, an event is done. A secret that Relay generated marks no step as done. `relay relays checklist` shows this list.
 */
import { type Static, Type } from "typebox";
import { oneOf, orNull, textOrNull } from "../../base/schema.ts";
import { endSentence } from "../../base/text.ts";
import { readEvents } from "../../engine/event/list.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { findRelay, type RelayRow } from "../../rules/relay/relay.ts";
import { listMissing, makeCatalogLookup } from "../../rules/relay/relay-reference.ts";
import { findSecretIssuer, secretNeedOf } from "../../rules/relay/relay-secret.ts";
import { listFollowers, sourceNameOf, withScheme } from "../../rules/relay/source.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import type { ReceiverTrigger } from "../../rules/trigger/receiver.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type EventType, eventTypeView, listEventTypes } from "./event-type.ts";

const STEPS = [
  "catalog",
  "url",
  "event_types",
  "secret_place",
  "secret",
  "verified",
  "occurred",
  "done",
  "purchase",
  "refund",
] as const;

const checklistStep = Type.Object({
  step: oneOf(STEPS),
  title: Type.String(),
  done: Type.Boolean(),
  /** The instruction, in sentences; null once the step is done. */
  todo: textOrNull,
});
type Step = Static<typeof checklistStep>;

export const checklistView = Type.Object({
  relay: Type.String(),
  /** The title of the known sender; null for an unknown one and for other triggers. */
  sender: textOrNull,
  /** The receiver URL; null for other triggers. */
  receiverUrl: textOrNull,
  /** The event types to choose at the sender; empty where Relay does not know them. */
  eventTypes: Type.Array(eventTypeView),
  steps: Type.Array(checklistStep),
  /** The number of steps that are not done. */
  left: Type.Integer(),
  /** The first step that is not done; null where all are done. */
  next: orNull(checklistStep),
});
export type ChecklistView = Static<typeof checklistView>;

/** The number of done events that are searched for one that is no test. */
const MAX_DONE = 50;

/** The events of a relay's life that tick the steps. */
interface Facts {
  /** True if any request arrived. */
  requested: boolean;
  verified: boolean;
  /** The cause of the newest rejection since the secret was set, while no request verified. */
  rejectedBecause: string | null;
  /** True if that request was rejected because its signature does not match. */
  mismatch: boolean;
  /** True if an event exists that no test made. */
  occurred: boolean;
  done: boolean;
}

export async function showChecklist(
  store: Store,
  environment: Environment,
  relay: RelayRow,
  urlOf: (name: string) => string,
): Promise<ChecklistView> {
  const sourceName = sourceNameOf(relay.definition);
  const source =
    sourceName === null ? null : await store.read((tx) => findRelay(tx, environment.id, sourceName));
  const { trigger } = source === null ? relay.definition : withScheme(relay.definition, source.definition);
  const isReceiver = trigger.kind === "receiver";
  const receiverUrl = urlOf(source?.name ?? relay.name);
  const sender = isReceiver ? await findSenderOf(trigger) : null;
  const facts = await readFacts(store, environment, relay, source ?? relay);
  const missing = await store.read((tx) =>
    listMissing(makeCatalogLookup(tx, environment.id), relay.definition),
  );
  const followers = await store.read((tx) => listFollowers(tx, environment.id, relay.name));
  const eventTypes = isReceiver ? await listEventTypes({ name: relay.name, trigger }, followers, sender) : [];
  const context = { environment, relay, source, sender, facts, receiverUrl, eventTypes };
  const steps = [
    ...listCatalogSteps(relay, missing),
    ...(isReceiver ? listReceiverSteps(context) : listOtherSteps(context)),
    {
      step: "done",
      title: "The first real event is done",
      done: facts.done,
      todo: facts.occurred
        ? `No event is done yet. See why with relay events list --relay ${relay.name}.`
        : "Relay runs the actions of the first event. A test event does not count.",
    } as const,
    ...(await listSaleSteps(store, relay, followers, sender)),
  ].map((step): Step => ({ ...step, todo: step.done ? null : step.todo }));
  const open = steps.filter(({ done }) => !done);
  return {
    relay: relay.name,
    sender: sender?.title ?? null,
    receiverUrl: isReceiver ? receiverUrl : null,
    eventTypes,
    steps,
    left: open.length,
    next: open[0] ?? null,
  };
}

/** Loads the registry of senders at the first call. */
async function findSenderOf(trigger: ReceiverTrigger): Promise<Sender | null> {
  const { recogniseSender } = await import("../../rules/senders/registry.ts");
  return recogniseSender(trigger);
}

async function readFacts(
  store: Store,
  { id: environmentId, processorSecretSetAt }: Environment,
  relay: RelayRow,
  verifying: RelayRow,
): Promise<Facts> {
  const filter = { relay: relay.name, sinceMs: relay.createdAt };
  const page = { limit: MAX_DONE, after: null };
  const newest = await readEvents(store, environmentId, filter, page);
  const dones = await readEvents(store, environmentId, { ...filter, state: "done" }, page);
  const setAt = (verifying.secretKind === "processor" ? processorSecretSetAt : verifying.secretSetAt) ?? 0;
  const { acceptedAt, refusedAt, logged, passed, rejection } = await store.read((tx) =>
    readRequests(tx, verifying, setAt),
  );
  const done = dones.items.some(isReal);
  const occurred = done || newest.items.some(isReal);
  // An import stores events that no request brought.
  const arrived = [...newest.items, ...dones.items].some(({ cameBy }) => cameBy === null);
  const verified = acceptedAt !== null || passed > 0 || arrived;
  return {
    requested: verified || refusedAt !== null || logged > 0,
    verified,
    rejectedBecause: verified || rejection === null ? null : rejection.slice(rejection.indexOf(" ") + 1),
    mismatch: !verified && rejection?.startsWith("bad_signature ") === true,
    occurred,
    done,
  };
}

interface RequestFacts {
  acceptedAt: number | null;
  refusedAt: number | null;
  /** The numbers of logged requests and of those that verified. */
  logged: number;
  passed: number;
  /** The code and the cause of the newest rejection, with a space between them. */
  rejection: string | null;
}

async function readRequests(tx: Reader, { id }: RelayRow, setAt: number): Promise<RequestFacts> {
  const row = await tx.get<RequestFacts>(REQUESTS, { id, setAt });
  return row ?? { acceptedAt: null, refusedAt: null, logged: 0, passed: 0, rejection: null };
}

const REQUESTS = `SELECT accepted_at AS acceptedAt, refused_at AS refusedAt,
    (SELECT count(*) FROM recent_request AS log WHERE log.environment_id = relay.environment_id AND log.relay_name = relay.name
      AND log.at >= relay.created_at) AS logged,
    (SELECT count(*) FROM recent_request AS log WHERE log.environment_id = relay.environment_id AND log.relay_name = relay.name
      AND log.at >= relay.created_at AND log.outcome IN ('ignored', 'duplicate')) AS passed,
    (SELECT code || ' ' || cause FROM recent_request AS log WHERE log.environment_id = relay.environment_id AND log.relay_name = relay.name
      AND log.at >= relay.created_at AND log.at >= $setAt AND log.outcome = 'refused' ORDER BY log.at DESC LIMIT 1) AS rejection
  FROM relay WHERE id = $id`;

interface StepContext {
  environment: Environment;
  relay: RelayRow;
  /** The receiver that the relay follows; null: it verifies its requests itself. */
  source: RelayRow | null;
  sender: Sender | null;
  facts: Facts;
  receiverUrl: string;
  eventTypes: EventType[];
}

function listCatalogSteps(
  { definition }: RelayRow,
  missing: readonly { kind: string; name: string }[],
): Step[] {
  const fields = ["collection", "product", "plan", "entitlement"];
  if (!definition.actions.some((action) => fields.some((field) => field in action))) return [];
  const names = missing.map(({ kind, name }) => `${kind} ${name}`).join(", ");
  return [
    {
      step: "catalog",
      title: "Create the items that the actions name",
      done: missing.length === 0,
      todo: `Create ${names}. Without ${missing.length === 1 ? "it" : "them"} the events of this relay die.`,
    },
  ];
}

function listReceiverSteps(context: StepContext): Step[] {
  const { relay, source, sender, facts, receiverUrl, eventTypes } = context;
  const at = sender === null ? "the sender" : sender.title;
  const typeSteps: Step[] =
    eventTypes.length === 0
      ? []
      : [
          {
            step: "event_types",
            title: `Choose the event types at ${at}`,
            done: facts.occurred,
            todo: `Choose ${eventTypes.map(({ type }) => type).join(", ")}.`,
          },
        ];
  if (source !== null)
    return [
      ...typeSteps,
      {
        step: "verified",
        title: `The receiver ${source.name} verifies a request`,
        done: facts.verified,
        todo: `This relay follows ${source.name}. See what ${source.name} needs with relay relays checklist ${source.name}.`,
      },
    ];
  const steps: Step[] = [
    {
      step: "url",
      title: `Register the receiver URL at ${at}`,
      done: facts.requested,
      todo: `${sender?.register ?? "Open the webhook settings of the sender and enter the receiver URL."} The URL is ${receiverUrl}`,
    },
  ];
  return [
    ...steps,
    ...typeSteps,
    ...listSecretSteps(context, at),
    {
      step: "verified",
      title: "The first request verifies",
      done: facts.verified,
      todo:
        facts.rejectedBecause === null
          ? `Send an event from ${at}. If Relay rejects it, this step says why.`
          : `No request has verified yet. The last one was rejected because ${endSentence(facts.rejectedBecause)} See the rejected requests with relay requests list --relay ${relay.name}.`,
    },
  ];
}

/** The steps of a source whose followers sell, each with the actions that tick it. */
const SALES = [
  {
    step: "purchase",
    title: "The first test purchase is done",
    actions: ["fulfil_product", "grant_plan"],
    how: "Buy once in the test mode of",
  },
  {
    step: "refund",
    title: "The first refund is done",
    actions: ["refund_product"],
    how: "Refund that purchase at",
  },
] as const;

/** Lists the steps that try a sale. A step is done once one of its followers has a done event that no test made. */
async function listSaleSteps(
  store: Store,
  { environmentId, createdAt }: RelayRow,
  followers: Awaited<ReturnType<typeof listFollowers>>,
  sender: Sender | null,
): Promise<Step[]> {
  const steps: Step[] = [];
  for (const { step, title, actions, how } of SALES) {
    const names = followers
      .filter(({ definition }) => definition.actions.some(({ type }) => actions.some((one) => one === type)))
      .map(({ name }) => name);
    if (names.length === 0) continue;
    let done = false;
    for (const name of names) done ||= await hasDoneEvent(store, environmentId, name, createdAt);
    const who = names.length === 1 ? String(names) : `One of ${names.join(", ")}`;
    const todo = `${how} ${sender?.title ?? "the provider"}. ${who} then has a done event. A test event does not count.`;
    steps.push({ step, title, done, todo });
  }
  return steps;
}

/** Reports whether one of the newest done events since then was not a test. */
async function hasDoneEvent(
  store: Store,
  environmentId: number,
  relay: string,
  sinceMs: number,
): Promise<boolean> {
  const page = { limit: MAX_DONE, after: null };
  const { items } = await readEvents(store, environmentId, { relay, sinceMs, state: "done" }, page);
  return items.some(isReal);
}

function isReal({ cameBy }: { cameBy?: string | null }): boolean {
  return cameBy !== "test";
}

/** Lists the steps of the secret. A secret that Relay generated counts once a request verified, and a pasted one until a request is rejected. */
function listSecretSteps({ environment, relay, sender, facts }: StepContext, at: string): Step[] {
  const { name, secretKind, definition } = relay;
  const need = secretNeedOf(definition);
  if (need === null) return [];
  const isFitting = !facts.mismatch;
  const place = {
    step: "secret_place",
    title: need === "public_key" ? `Find the public key at ${at}` : `Find the secret at ${at}`,
    todo:
      sender?.secret.where ??
      "Open the webhook settings of the sender and copy what verifies its signatures.",
  } as const;
  if (need === "processor") {
    const done = environment.processorSecret !== null && isFitting;
    return [
      { ...place, done },
      {
        step: "secret",
        title: "Store the processor secret",
        done,
        todo: "Set it with relay settings set processorSecret.",
      },
    ];
  }
  const issuer = findSecretIssuer(definition);
  if (secretKind === "minted" && (issuer === null || environment.name === "local"))
    return [
      {
        step: "secret",
        title: issuer === null ? `Enter the secret of this relay at ${at}` : `Paste the secret of ${at} here`,
        done: facts.verified,
        todo:
          issuer === null
            ? `${sender?.secret.where ?? "Paste the secret of this relay at the sender."} If the sender shows its own secret, paste that one with relay relays set-secret ${name}. If you lost the secret, make a new one with relay relays rotate-secret ${name}.`
            : `${sender?.secret.where ?? ""} Then store it with relay relays set-secret ${name}. Until then, Relay signs test requests with its own secret.`,
      },
    ];
  // A secret that the sender issues is never one that Relay generated.
  const done = secretKind !== "none" && (secretKind === "minted" ? facts.verified : isFitting);
  return [
    { ...place, done },
    {
      step: "secret",
      title: need === "public_key" ? "Paste the public key here" : "Paste the secret here",
      done,
      todo: `Paste it with relay relays set-secret ${name}.`,
    },
  ];
}

function listOtherSteps({ relay: { definition }, facts }: StepContext): Step[] {
  const { trigger } = definition;
  if (trigger.kind === "schedule")
    return [
      {
        step: "occurred",
        title: "The first tick is stored",
        done: facts.occurred,
        todo: "Wait for the next tick of the schedule. Relay stores no tick while the relay is paused.",
      },
    ];
  const collection = trigger.kind === "data_change" ? trigger.collection : "";
  return [
    {
      step: "occurred",
      title: "The first record changes",
      done: facts.occurred,
      todo: `Write a record in ${collection} that matches, with your app or in Records. A record that a relay writes starts no relay.`,
    },
  ];
}
