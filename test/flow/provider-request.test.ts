/** Tests recorded requests of real providers in the running service: valid ones verify once, and each tampered one gets its code. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import recorded from "../golden/provider-request.json";
import { RELAY_NAME } from "../kit/event-sql.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

interface Expectation {
  status: number;
  code?: string;
  json?: Record<string, unknown>;
  absent?: string[];
}

let running: RunningService;

beforeAll(async () => {
  running = await startRunningService({
    config: { limits: { ...DEFAULT_LIMITS, unverifiedCallsPerMinute: 1_000 } },
  });
  await running.api("POST", "/collections", {
    name: "provider_events",
    kind: "shared",
    fields: { provider: { type: "text" }, value: { type: "text" } },
  });
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

function fits(expected: Expectation, status: number, body: Record<string, unknown>): boolean {
  return (
    expected.status === status &&
    (expected.code === undefined || expected.code === body.code) &&
    Object.entries(expected.json ?? {}).every(([name, value]) => body[name] === value) &&
    (expected.absent ?? []).every((name) => body[name] === undefined || body[name] === false)
  );
}

for (const provider of recorded.providers) {
  describe(provider.title, () => {
    let accepted = 0;

    test("its relay is saved, with the URL that it signed", async () => {
      const saved = await running.api("POST", "/relays", {
        definition: provider.definition,
        secret: provider.secret,
      });
      expect(saved.status).toBe(201);
      expect(saved.body.receiverUrl).toBe(provider.url);
    });

    for (const { id, why, request, expect: expected } of provider.cases) {
      test(`${id}: ${why}`, async () => {
        const answer = await running.hook(provider.definition.name, {
          headers: Object.fromEntries(request.headers as [string, string][]),
          body: Buffer.from(request.bodyBase64, "base64"),
          search: (request as { urlSuffix?: string }).urlSuffix ?? "",
        });
        const found = (expected as Expectation[]).some((one) => fits(one, answer.status, answer.body));
        expect(found, `answered ${answer.status} ${JSON.stringify(answer.body)}`).toBe(true);
        if (answer.status === 200 && answer.body.duplicate === undefined && answer.body.ignored === undefined) accepted += 1;
      });
    }

    test("each accepted request wrote one record, and no other request did", async () => {
      await running.drain();
      const written = await running.rows<{ data: string }>("SELECT data FROM record WHERE written_by = ?1", `relay:${provider.definition.name}`);
      expect(accepted).toBeGreaterThan(0);
      expect(written).toHaveLength(accepted);
      const events = await running.rows(`SELECT seq FROM event WHERE ${RELAY_NAME} = ?1 AND state = 'done'`, provider.definition.name);
      expect(events).toHaveLength(accepted);
    });
  });
}
