/**
 * Plays a life of a selling kit, one step at a time: the requests of the step, signed as the provider signs, go to the receiver of the kit's source.
 * They have every effect of real requests, so production plays none. A life is a function of the kit, the life, the person and the run, so a step
 * that is sent again makes only duplicates. Source: ADR 48.
 */
import { type Static, Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { Refusal, rejectField } from "../../base/refusal.ts";
import { fields, orNull } from "../../base/schema.ts";
import { showText } from "../../base/shape.ts";
import type { Receiver } from "../../engine/receiver/receive.ts";
import { explainToOwner } from "../../engine/receiver/rejection.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { listKnownSecrets } from "../../rules/relay/known-secret.ts";
import type { LiveRelay, LiveRelays, ReceiverRelay } from "../../rules/relay/live-relay.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import { findSavedKit } from "../../rules/relay/saved-kit.ts";
import type { Kit, KitLife } from "../../rules/senders/kit.ts";
import type { LifeRequest, playLife as PlayLife } from "../../rules/senders/kit-life.ts";
import { HandshakeAnswer } from "../../rules/verify/handshake.ts";
import { parseEmailAddress } from "../../shop/people/person.ts";
import { fileTokenManually } from "../../shop/people/person-identifier.ts";
import { invitePerson } from "../../shop/people/person-invite.ts";
import type { Origin, Store } from "../../store/port.ts";
import { effectView, readEffect, waitUntilSettled } from "./life-effect.ts";
import { signAsSender } from "./signature.ts";

const MAX_NAME_CHARS = 63;
/** The run is the time of its beginning, in hundredths of a second: 12 digits, and the times in its requests follow from it. */
const RUN_MS = 10;

export const lifeInput = fields({
  kit: Type.String({ maxLength: MAX_NAME_CHARS, description: "the provider of a selling kit" }),
  life: Type.String({ maxLength: MAX_NAME_CHARS, description: "the name of a life of the kit" }),
  person: Type.Optional(
    Type.String({
      maxLength: MAX_EMAIL_CHARS,
      description: "the customer's address; absent: a new person of this run",
    }),
  ),
  run: Type.Optional(
    Type.String({
      maxLength: 12,
      pattern: "^[0-9]{12}$",
      description: "the run of the first answer; absent: a new run",
    }),
  ),
  step: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      description: "the step to send, from 1; absent: nothing is sent, and the answer has the steps",
    }),
  ),
});

export const lifeView = Type.Object({
  kit: Type.String(),
  /** The provider's name. */
  title: Type.String(),
  life: Type.String(),
  lifeTitle: Type.String(),
  person: Type.String(),
  run: Type.String(),
  /** The names of relays of the kit that are not saved here. Their part of the life does nothing. */
  missing: Type.Array(Type.String()),
  steps: Type.Array(Type.Object({ day: Type.Integer(), does: Type.String() })),
  /** The step that was sent; null: none. */
  step: orNull(Type.Integer()),
  effect: effectView,
});
export type LifeView = Static<typeof lifeView>;

interface LifeDeps {
  store: Store;
  clock: Clock;
  sealer: Sealer;
  relays: Pick<LiveRelays, "current">;
  receiver: Pick<Receiver, "receive">;
  origin: Origin;
  /** The caller's address, for the caps of the receiver. */
  source: string;
  invitesPerDay: number;
}

/** Sends a step, or shows the steps. Throws `forbidden` in production, `invalid_input` where nothing can be sent, and a receiver's refusals. */
export async function playStep(
  deps: LifeDeps,
  environment: { name: string; heldAt: number | null },
  input: Static<typeof lifeInput>,
  change: Change,
): Promise<LifeView> {
  if (environment.name === "production") throw rejectField("environment", IN_PRODUCTION, "forbidden");
  const { kit, life, title, playLife } = await requireLife(input);
  if (environment.heldAt !== null) throw rejectField("environment", onHold(environment.name));
  const { environmentId, nowMs } = change;
  const { relays } = await deps.relays.current();
  const ownRelays = relays.filter((relay) => relay.environmentId === environmentId);
  const source = requireSource(ownRelays, kit, title);
  const followers = ownRelays.filter(({ receiver }) => receiver?.source?.id === source.id);
  const saved = findSavedKit(kit, followers);
  if (saved.relays.length === 0) throw rejectField("kit", incomplete(kit, title));
  for (const relay of [source, ...saved.relays])
    if (relay.waitsFor === "paused") throw rejectField("kit", paused(relay));
  const { run = String(Math.floor(nowMs / RUN_MS)).padStart(12, "0"), step = null } = input;
  if (step !== null && input.run === undefined) throw rejectField("run", WITHOUT_RUN);
  const person = readPerson(input.person ?? `ada-${run}@example.com`);
  const playing = { names: saved.names, person, run, startMs: Number(run) * RUN_MS };
  const steps = playLife(kit, life, playing);
  const sign = await openSigner(deps, source, title);
  const eventIds: string[] = [];
  if (step !== null) {
    const sent = steps[step - 1];
    if (sent === undefined) throw rejectField("step", noStep(step, steps.length));
    if (kit.token !== undefined && step === 1)
      await fileToken(deps, person, kit.token.replace("{run}", run), change);
    const isNew: boolean[] = [];
    // A person is known before the requests that name only the provider's id of the customer. An event that finds none would run again in a minute.
    const requests = sent.requests.toSorted(byCustomer);
    for (const [at, request] of requests.entries()) {
      if (requests[at - 1]?.namesCustomer === true && !request.namesCustomer)
        await waitUntilSettled(deps, environmentId, eventIds);
      const answer = await sendRequest(deps, source, sign(request, nowMs), deps.source);
      isNew.push(!("duplicate" in answer || "ignored" in answer));
      eventIds.push(...listEventIds(answer));
    }
    if (isNew.includes(true)) {
      const after = { kit: kit.sender, life: life.name, run, step };
      const target = relayTarget(source.name);
      await deps.store.write(
        deps.origin,
        (tx) => writeAudit(tx, { ...change, action: "event.test_sent", target, after }),
        change.environmentId,
      );
    }
  }
  return {
    kit: kit.sender,
    title,
    life: life.name,
    lifeTitle: life.title,
    person,
    run,
    missing: [...saved.missing],
    steps: steps.map(({ day, does }) => ({ day, does })),
    step,
    effect: await readEffect(deps.store, { environmentId, nowMs }, person, [...new Set(eventIds)]),
  };
}

function byCustomer(one: LifeRequest, other: LifeRequest): number {
  return Number(other.namesCustomer) - Number(one.namesCustomer);
}

const IN_PRODUCTION =
  "The environment is production, and a simulation has every effect that real requests have: play it in local development or in the development environment.";
const WITHOUT_RUN =
  "run is missing, and without it a step that is sent again would act again: send the run of the answer without a step.";

function onHold(name: string): string {
  return `The environment ${name} is on hold, so the events of a simulation would wait: release the hold first (relay settings set held off).`;
}

function paused({ name }: LiveRelay): string {
  return `The relay ${name} is paused, so its events would wait: resume it first (relay relays resume ${name}).`;
}

function incomplete({ sender }: Kit, title: string): string {
  return `No relay of the kit of ${title} follows ${sender} here: write the kit with relay init --from ${sender} --sell, and save it with relay dev or relay sync.`;
}

function noStep(step: number, count: number): string {
  return `step is ${step}, and the life has ${count} ${count === 1 ? "step" : "steps"}: send a number from 1 to ${count}.`;
}

interface FoundLife {
  kit: Kit;
  life: KitLife;
  /** The provider's name. */
  title: string;
  playLife: typeof PlayLife;
}

/** Finds the life. The kits load at the first simulation. */
async function requireLife(input: Static<typeof lifeInput>): Promise<FoundLife> {
  const { KITS, findKit } = await import("../../rules/senders/kit-registry.ts");
  const { playLife } = await import("../../rules/senders/kit-life.ts");
  const { requireSender } = await import("../../rules/senders/registry.ts");
  const kit = findKit(input.kit);
  if (kit === null) {
    const known = KITS.map(({ sender }) => sender).join(", ");
    throw rejectField(
      "kit",
      `kit is ${showText(input.kit)}, which has no selling kit: choose one of ${known}.`,
    );
  }
  const { title } = requireSender(kit.sender);
  const life = kit.lives.find(({ name }) => name === input.life);
  if (life !== undefined) return { kit, life, title, playLife };
  const known = kit.lives.map(({ name }) => name).join(", ");
  const what =
    input.life === "" ? "is missing" : `is ${showText(input.life)}, which the kit of ${title} does not have`;
  throw rejectField("life", `life ${what}: choose one of ${known}.`);
}

/** Finds the relay that receives the provider's requests. */
function requireSource(ownRelays: readonly LiveRelay[], { sender }: Kit, title: string): ReceiverRelay {
  const relay = ownRelays.find(({ name }) => name === sender);
  if (relay === undefined)
    throw rejectField(
      "kit",
      `The kit of ${title} needs the relay ${sender}, which is not here: write it with relay init --from ${sender} --sell, and save it with relay dev or relay sync.`,
    );
  if (relay.receiver === null || relay.receiver.source !== null)
    throw rejectField(
      "kit",
      `The kit needs ${sender} as a receiver with its own URL, and this relay is none: rename it, and write the kit with relay init --from ${sender} --sell.`,
    );
  return relay as ReceiverRelay;
}

function readPerson(given: string): string {
  const address = parseEmailAddress(given);
  if (address !== null) return address;
  throw rejectField(
    "person",
    `person is ${showText(given)}, which is no email address: write one such as ada@example.com.`,
  );
}

/** Files the token that the customer has before the life begins, as the app does. Creates the person. */
async function fileToken(
  { store, sealer, origin, invitesPerDay }: LifeDeps,
  email: string,
  token: string,
  change: Change,
): Promise<void> {
  const { environmentId, by: createdBy, nowMs } = change;
  await store.write(
    origin,
    async (tx) => {
      const { person } = await invitePerson(tx, { environmentId, createdBy, nowMs, invitesPerDay, email });
      const fingerprint = (text: string) => sealer.fingerprint(text);
      await fileTokenManually(tx, change, { personId: person.id, token, fingerprint });
    },
    environmentId,
  );
}

type Signed = ReturnType<typeof signAsSender> & {};

/** Returns a function that signs a request with the source's own secret. Throws where Relay cannot sign. */
async function openSigner(
  { store, sealer }: LifeDeps,
  source: ReceiverRelay,
  title: string,
): Promise<(request: LifeRequest, nowMs: number) => Signed> {
  const { name, receiver, definition } = source;
  const { trigger } = definition;
  if (receiver.closed === "no_secret")
    throw rejectField(
      "kit",
      `The relay ${name} has no secret yet, so nothing can be signed as ${title} signs: set it with relay relays set-secret ${name}, or on the relay's page.`,
    );
  const secrets = await store.read((tx) => listKnownSecrets(tx, sealer, source));
  return ({ body, contentType }, nowMs) => {
    const draft = { body: Buffer.from(body), contentType };
    const signed =
      trigger.kind === "receiver" && receiver.closed === null
        ? signAsSender(trigger.verify, secrets, draft, receiver.url, nowMs)
        : null;
    if (signed !== null) return signed;
    const why =
      receiver.closed === null
        ? "it checks a public key, and only the provider can sign"
        : explainToOwner(source, null).cause;
    throw rejectField(
      "kit",
      `Nothing can be sent to the relay ${name}: ${why}. Correct the relay, or send test requests from ${title}.`,
    );
  };
}

/** Sends the request to the receiver. Throws its refusal. */
async function sendRequest(
  { receiver }: LifeDeps,
  { appId, name, environmentId }: ReceiverRelay,
  { headers, body, search }: Signed,
  source: string,
) {
  const answer = await receiver.receive({
    appId,
    name,
    headers: new Headers(headers),
    body,
    search,
    source: () => source,
    testIn: environmentId,
  });
  if (answer instanceof Refusal) throw answer;
  if (answer instanceof HandshakeAnswer) throw new Error(`${name} took a request of a life as a handshake.`);
  return answer;
}

function listEventIds(answer: Exclude<Awaited<ReturnType<typeof sendRequest>>, HandshakeAnswer>): string[] {
  if ("ignored" in answer) return [];
  if (answer.events !== undefined) return answer.events.map(({ eventId }) => eventId);
  return answer.eventId === null ? [] : [answer.eventId];
}
