/** Tests events over HTTP: the list with its filters, one event with its runs, and replay. */
import { expect } from "bun:test";
import { numberedId } from "../../src/base/id.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { runScenarios } from "../kit/api-scenario.ts";
import type { ApiServer } from "../kit/api-server.ts";
import { relayOf, seqOf } from "../kit/event-sql.ts";
import { START_MS } from "../kit/virtual-clock.ts";

const DONE = numberedId("evt", START_MS, 13);
const QUEUED = numberedId("evt", START_MS, 1);

async function withEvents(api: ApiServer): Promise<void> {
  const environmentId = api.environments.development.id;
  await api.store.write("app", async (tx) => {
    const insert = async (id: string, environment: number, relay: string, state: string) => {
      const { relayKey, nameKey } = await relayOf(tx, environment, environment === environmentId ? `rly_${relay}` : `rly_other_${relay}`, relay);
      await tx.run(
        `INSERT INTO event (seq, environment_id, relay_key, name_key, trigger, state, payload, created_at)
         VALUES (?1, ?2, ?3, ?4, 'receiver', ?5, ?6, ?7)`,
        seqOf(id),
        environment,
        relayKey,
        nameKey,
        state,
        '{"event":{"order":123456789012345678901},"mapped":{}}',
        START_MS,
      );
    };
    await insert(QUEUED, environmentId, "alpha", "queued");
    await insert(DONE, environmentId, "beta", "done");
    await insert(numberedId("evt", START_MS, 14), api.environments.production.id, "alpha", "done");
    await tx.run(
      "INSERT INTO run (event_seq, number, started_at, finished_at, outcome, results) SELECT seq, 1, ?2, ?2, 'ok', ?3 FROM event WHERE seq = ?1",
      seqOf(DONE),
      START_MS,
      '[{"type":"write_record","outcome":"done"}]',
    );
  });
}

/** Pauses the relay, so that queued events stay queued. */
async function withPausedRelay(api: ApiServer): Promise<void> {
  await withEvents(api);
  await api.store.write("app", (tx) =>
    tx.run(
      `INSERT INTO relay (id, environment_id, name, definition, state, origin_kind, origin_at, active_since, created_at, updated_at)
       VALUES ('rly_beta', ?1, 'beta', '{}', 'paused', 'dashboard', 0, 0, 0, 0)`,
      api.environments.development.id,
    ),
  );
}

const ids = (json: { items: { id: string }[] }): string[] => json.items.map(({ id }) => id);

runScenarios([
  {
    name: "the list shows only this environment's events, newest first, without payloads",
    given: withEvents,
    request: "GET /events",
    status: 200,
    also: (_, { json, text }) => {
      expect(ids(json)).toEqual([DONE, QUEUED]);
      expect(text).not.toContain("12345678901");
    },
  },
  {
    name: "the list filters by relay, state, trigger and text",
    given: withEvents,
    request: "GET /events?relay=beta&state=done&trigger=receiver&q=345678",
    status: 200,
    also: (_, { json }) => expect(ids(json)).toEqual([DONE]),
  },
  {
    name: "the list continues from its cursor",
    given: withEvents,
    request: "GET /events?limit=1",
    status: 200,
    also: async (api, { json }) => {
      const next = await api.call(`${api.E}/events?limit=1&cursor=${json.next}`, { key: api.keys.dev });
      expect([...ids(json), ...ids(next.json), next.json.next]).toEqual([DONE, QUEUED, null]);
    },
  },
  {
    name: "an unknown person is rejected, as an address and as an id",
    request: "GET /events?person=nobody@example.com",
    status: 400,
    answer: {
      code: "invalid_input",
      message:
        'person is not valid: No person "nobody@example.com" exists in this environment: relay people list shows the existing people. If this person paid, look for a rejected request with relay requests list.',
    },
    also: async (api) => {
      expect((await api.call(`${api.E}/events?person=per_00000000000000000000000000000000`, { key: api.keys.dev })).status).toBe(400);
    },
  },
  {
    name: "the list filters by person, named by address, id or token",
    async given(api) {
      await withEvents(api);
      const { id: environmentId } = api.environments.development;
      await api.store.write("app", async (tx) => {
        const invite = { environmentId, email: "ada@example.com", createdBy: "test", nowMs: START_MS, invitesPerDay: 9 };
        const { person } = await invitePerson(tx, invite);
        await tx.run("UPDATE event SET person_id = ?2 WHERE seq = ?1", seqOf(DONE), person.id);
        await tx.run(
          "INSERT INTO person_token (environment_id, token, person_id, created_at) VALUES (?1, 'store-7', ?2, 1)",
          environmentId,
          person.id,
        );
      });
    },
    request: "GET /events?person=Ada@example.com",
    status: 200,
    also: async (api, { json }) => {
      expect(ids(json)).toEqual([DONE]);
      const { id } = json.items[0].person;
      for (const name of [id, "store-7"]) expect(ids((await api.call(`${api.E}/events?person=${name}`, { key: api.keys.dev })).json)).toEqual([DONE]);
    },
  },
  {
    name: "an invalid state is rejected",
    request: "GET /events?state=lost",
    status: 400,
    answer: {
      code: "invalid_input",
      message: '`state` is "lost": it must be one of queued, running, done, failed, dead.',
    },
  },
  {
    name: "an invalid since is rejected",
    request: "GET /events?since=yesterday",
    status: 400,
    answer: { code: "invalid_input" },
  },
  {
    name: "one event shows its payload with every digit and each action's result",
    given: withEvents,
    request: `GET /events/${DONE}`,
    status: 200,
    answer: {
      event: {
        id: DONE,
        state: "done",
        runs: [{ attempt: 1, outcome: "ok", results: [{ type: "write_record", outcome: "done" }] }],
      },
    },
    also: (_, { text }) => expect(text).toContain("123456789012345678901"),
  },
  {
    name: "a replay of a finished event queues it, is audited, and wakes the runner after the commit",
    given: withPausedRelay,
    request: `POST /events/${DONE}/replay`,
    status: 202,
    answer: { event: { state: "queued", attempts: 0, replays: 1 } },
    changes: { event: 0, audit: 1 },
    also: (api) => expect(api.woken.runner).toBe(1),
  },
  {
    name: "a replay of a queued event is not_replayable",
    given: withEvents,
    request: `POST /events/${QUEUED}/replay`,
    status: 409,
    answer: { code: "not_replayable" },
    also: (api) => expect(api.woken.runner).toBe(0),
  },
  {
    name: "an event of another environment is not_found",
    given: withEvents,
    request: `GET /api/apps/shop/production/events/${DONE}`,
    call: (api) => ({ key: api.keys.live }),
    status: 404,
    answer: { code: "not_found" },
  },
]);
