/**
 * Tests grants, revocations and sales in random order: events, repeats, retries, replays, edits, pauses, suspensions, spending and restarts. A model
 * follows the audit's order of commits. The store must equal the model, and no action may count twice.
 */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { DAY_MS } from "../../src/base/limit.ts";
import type { MailOutcome } from "../../src/platform/mail/mailer.ts";
import { roundsOf } from "../kit/chosen-store.ts";
import { editRelay, replay } from "../kit/event-flow.ts";
import { EVENT_ID } from "../kit/event-sql.ts";
import { HOOK_SECRET, receiverDefinition, saveRelay, signedCall } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { SaleModel } from "../kit/sale-model.ts";

const ACTIONS: Readonly<Record<string, readonly { type: string; [field: string]: unknown }[]>> = {
  buy: [
    { type: "fulfil_product", product: "lamp", ref: "{{mapped.ref}}" },
    { type: "grant_credits", amount: 3 },
  ],
  top: [{ type: "grant_credits", amount: 5, ref: "{{mapped.ref}}" }],
  refund: [{ type: "refund_product", product: "lamp", ref: "{{mapped.ref}}" }],
  renew: [{ type: "grant_plan", plan: "pro", ref: "in-{{mapped.ref}}" }],
  cancel: [{ type: "revoke_plan", plan: "pro" }],
  give: [{ type: "grant_access", entitlement: "access:club", expiresAt: "99w" }],
  take: [
    { type: "revoke_access", entitlement: "access:club" },
    { type: "revoke_access", entitlement: "lamp" },
  ],
  mail: [{ type: "email_person", subject: "{{mapped.event_id}}", text: "Hello." }],
};
const RELAYS = Object.keys(ACTIONS);
const PEOPLE = ["ada@example.com", "bob@example.com"];
const OUTCOMES: readonly MailOutcome[] = [
  { kind: "sent" },
  { kind: "failed", reason: "text_refused", message: "try later", retry: true },
  { kind: "unknown", reason: "connection_lost", message: "gone" },
];
const MARK = { type: "write_record", collection: "log", data: { id: "{{mapped.event_id}}" } };

/** Defines a relay in its first form, or with a record written before or after its work. */
function define(name: string, variant: number): Record<string, unknown> {
  const work = ACTIONS[name] ?? [];
  const actions = [work, [MARK, ...work], [...work, MARK]][variant % 3] ?? work;
  return receiverDefinition({ name, actions, map: { event_id: "id", person_email: "email", ref: "ref" } });
}

interface Step {
  do: "send" | "again" | "replay" | "edit" | "pause" | "resume" | "wait" | "suspend" | "spend" | "restart" | "mails";
  relay: number;
  who: number;
  ref: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  do: fc.oneof(
    { weight: 10, arbitrary: fc.constant<Step["do"]>("send") },
    {
      weight: 9,
      arbitrary: fc.constantFrom<Step["do"]>(...(["again", "replay", "edit", "pause", "resume", "wait", "suspend", "spend", "mails"] as const)),
    },
    { weight: 1, arbitrary: fc.constant<Step["do"]>("restart") },
  ),
  relay: fc.nat(RELAYS.length - 1),
  who: fc.nat(PEOPLE.length - 1),
  ref: fc.nat(3),
});

interface Town {
  running: RunningService;
  people: string[];
  /** Counts by subject the mails that were sent or may have been. */
  left: Map<string, number>;
  mails: { outcome: MailOutcome };
}

async function openTown(): Promise<Town> {
  const left = new Map<string, number>();
  const mails: Town["mails"] = { outcome: { kind: "sent" } };
  const mailer = {
    async send({ subject }: { subject: string }) {
      const { outcome } = mails;
      if (outcome.kind !== "failed") left.set(subject, (left.get(subject) ?? 0) + 1);
      return outcome;
    },
  };
  const running = await startRunningService({ ports: { mailer, resolveTxt: async () => [] } });
  await running.api("POST", "/collections", { name: "log", kind: "shared", fields: { id: "text" } });
  await running.api("PUT", "/access/club", {});
  for (const name of RELAYS) await saveRelay(running, define(name, 0), HOOK_SECRET);
  await running.api("PUT", "/products/lamp", { credits: 10, soldThrough: { kind: "relay", relay: "buy" } });
  await running.api("PUT", "/plans/free", {});
  await running.api("PUT", "/plans/pro", { soldThrough: { kind: "relay", relay: "renew" } });
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at)
       SELECT id, 'shop.example', 't', 1 FROM environment WHERE name = 'development'`,
    ),
  );
  const people: string[] = [];
  for (const email of PEOPLE) people.push((await running.api("POST", "/persons", { email })).body.person.id);
  return { running, people, left, mails };
}

async function follow({ running, people, mails }: Town, steps: readonly Step[]): Promise<void> {
  const sent: { relay: string; body: object; id: string }[] = [];
  for (const [index, { do: what, relay: number, who, ref }] of steps.entries()) {
    const relay = RELAYS[number] ?? "buy";
    const one = sent[(number * 4 + ref) % Math.max(1, sent.length)];
    switch (what) {
      case "send": {
        const body = { id: `e${index}`, email: PEOPLE[who], ref: `pay_${ref % 3}` };
        const answer = await running.hook(relay, signedCall(body));
        expect(answer.status).toBe(200);
        sent.push({ relay, body, id: answer.body.eventId });
        break;
      }
      case "again":
        if (one !== undefined) expect((await running.hook(one.relay, signedCall(one.body))).body.duplicate).toBe(true);
        break;
      case "replay":
        if (one !== undefined) expect([202, 409]).toContain((await replay(running, one.id)).status);
        break;
      case "edit":
        await editRelay(running, define(relay, ref));
        break;
      case "pause":
      case "resume":
        expect((await running.api("POST", `/relays/${relay}/${what}`)).status).toBe(200);
        break;
      case "wait":
        running.clock.jump([1, 60_000, 300_000, 7_200_000][ref] ?? 0);
        await running.clock.advance(2_000);
        break;
      case "suspend":
        await setStatus(running, people[who], ref % 2 === 0 ? "suspended" : "active");
        break;
      case "spend": {
        const spend = { amount: -(1 + ref * 4), reason: "", key: `key-${index}` };
        const { status } = await running.api("POST", `/persons/${people[who]}/credits`, spend);
        expect([201, 403, 409]).toContain(status);
        break;
      }
      case "mails":
        mails.outcome = OUTCOMES[ref % OUTCOMES.length] ?? { kind: "sent" };
        break;
      case "restart":
        await running.restart();
    }
    if (ref % 2 === 0) await running.drain();
  }
}

function setStatus(running: RunningService, person: string | undefined, status: string) {
  return running.api("PATCH", `/persons/${person}`, { status });
}

/** Removes every obstacle, runs all retries, and replays every event. */
async function settle({ running, people, mails }: Town): Promise<void> {
  mails.outcome = { kind: "sent" };
  for (const person of people) await setStatus(running, person, "active");
  for (const relay of RELAYS) await running.api("POST", `/relays/${relay}/resume`);
  for (let round = 0; round < 7; round++) {
    running.clock.jump(DAY_MS);
    await running.clock.advance(2_000);
    await running.drain();
  }
  await replayAll(running);
}

async function replayAll(running: RunningService): Promise<void> {
  for (const { id } of await running.rows<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event WHERE state <> 'queued'`)) {
    expect((await replay(running, id)).status).toBe(202);
  }
  await running.drain();
}

test("in any order each effect applies once, and the balances equal the sum of the actions", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 70, size: "max" }), async (steps) => {
      const town = await openTown();
      await using running = town.running;
      await follow(town, steps);
      await settle(town);
      const model = await SaleModel.read(running);
      expect(model.broken).toEqual([]);
      const held = await SaleModel.lookAt(running);
      expect(held).toEqual(model.holdings(town.people));
      await replayAll(running);
      expect(await SaleModel.lookAt(running)).toEqual(held);
      for (const [subject, count] of town.left) expect([subject, count]).toEqual([subject, 1]);
    }),
    { numRuns: Number(process.env.RELAY_PROPERTY_RUNS ?? roundsOf(25)), endOnFailure: true },
  );
});
