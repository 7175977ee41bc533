/** Tests GET /limits: how much of each measured limit an environment uses, and from when a use no longer counts. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { putEvents } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const HOUR_MS = 3_600_000;

let running: RunningService;
beforeAll(async () => {
  const mailer = { send: async () => ({ kind: "sent" }) as const };
  running = await startRunningService({ environments: ["development", "production"], ports: { mailer } });
  await running.service.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO sender_domain (environment_id, domain, verification_token, verified_at)
       SELECT id, 'shop.example', 't', 1 FROM environment`,
    ),
  );
});
afterAll(() => running[Symbol.asyncDispose]());

/** Returns the used and the total amount by limit. */
async function limits(environment: "development" | "production" = "development"): Promise<Record<string, [number, number]>> {
  const { limits: measured } = (await running.api("GET", "/limits", undefined, environment)).body;
  return Object.fromEntries(measured.map(({ name, used, limit }: { name: string; used: number; limit: number }) => [name, [used, limit]]));
}

const UNUSED = {
  relaysPerEnvironment: [0, 20],
  invitesPerDay: [0, 200],
  signupsPerDay: [0, 200],
  emailsPerHour: [0, 200],
  storedPerEnvironmentMb: [0, 10_000],
};

test("nothing is used at first", async () => {
  expect(await limits()).toEqual(UNUSED as never);
});

test("relays, new people, mails of the app and stored bytes count, in their environment", async () => {
  await saveRelay(
    running,
    receiverDefinition({
      map: { event_id: "id", person_email: "email" },
      actions: [{ type: "email_person", subject: "Hello", text: "Hello" }],
    }),
  );
  await putEvents(running, ["1", "2"], { relay: "orders", email: "ada@example.com" });
  await running.drain();
  await running.api("POST", "/persons", { email: "bob@example.com" });
  await running.api("POST", "/collections", { name: "notes", kind: "shared", fields: { text: { type: "text" } } });
  await running.api("POST", "/collections/notes/records", { data: { text: "x".repeat(1_000) } });
  const used = { ...UNUSED, relaysPerEnvironment: [1, 20], invitesPerDay: [2, 200], emailsPerHour: [2, 200], storedPerEnvironmentMb: [1, 10_000] };
  expect(await limits()).toEqual(used as never);
  expect(await limits("production")).toEqual({ ...UNUSED, emailsPerHour: [2, 200] } as never);
});

test("an hour later the mails no longer count, and a day later the new people", async () => {
  await running.clock.jump(HOUR_MS);
  expect((await limits()).emailsPerHour).toEqual([0, 200]);
  await running.clock.jump(24 * HOUR_MS);
  expect(await limits()).toEqual({ ...UNUSED, relaysPerEnvironment: [1, 20], storedPerEnvironmentMb: [1, 10_000] } as never);
});
