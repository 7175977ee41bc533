/**
 * Tests every sender's recipe in the real receiver of one service. Its example, signed like the sender signs, verifies and is read as written. A
 * changed byte, another secret and a stale request are rejected.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { SENDERS } from "../../src/rules/senders/registry.ts";
import type { Sender } from "../../src/rules/senders/sender.ts";
import { startCatalog, startDefinition } from "../../src/rules/senders/sender-start.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";
import { bodyOf, SIGNERS, type SignedCall, secretOf, type ToSign } from "../kit/sender-signer.ts";

const MINUTE_MS = 60_000;
let running: RunningService;

beforeAll(async () => {
  running = await startRunningService({
    config: {
      limits: {
        ...DEFAULT_LIMITS,
        relaysPerEnvironment: 200,
        eventlessCallsPerMinute: 10_000,
        unverifiedCallsPerMinute: 10_000,
        verifiedEventsPerMinute: 10_000,
      },
    },
  });
});
afterAll(() => running[Symbol.asyncDispose]());

function signerOf({ name }: Sender) {
  const signer = SIGNERS[name];
  if (signer === undefined) throw new Error(`nothing signs as ${name} does: add it to test/kit/sender-signer.ts`);
  return signer;
}

async function signExample(sender: Sender, change: Partial<ToSign> = {}) {
  const { body, contentType } = bodyOf(sender.example);
  const signer = signerOf(sender);
  const url = `https://relay.example.test/hooks/app_test/${sender.name}`;
  const signed: SignedCall = await signer.sign({ body, secret: secretOf(signer), nowMs: running.clock.now(), url, ...change });
  return { search: "", body, ...signed, headers: { "content-type": contentType, ...signed.headers } };
}

/** Reads a dotted path with the simplest possible code, independent of the service. */
function read(value: unknown, path: string): string {
  const found = path.split(".").reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null)?.[name], value);
  return typeof found === "object" ? JSON.stringify(found) : String(found);
}

for (const sender of SENDERS) {
  describe(sender.title, () => {
    test("its relay and its collection can be saved as offered", async () => {
      const { collections } = startCatalog(sender) as { collections: Record<string, object> };
      for (const [name, collection] of Object.entries(collections)) {
        expect((await running.api("POST", "/collections", { name, ...collection })).status).toBe(201);
      }
      const saved = await running.api("POST", "/relays", { definition: startDefinition(sender), secret: secretOf(signerOf(sender)) });
      expect([saved.status, saved.body.problems, saved.body.warnings]).toEqual([201, undefined, []]);
    });

    test("its signed example is stored once, and the mapped values equal the example's", async () => {
      const call = await signExample(sender);
      const first = await running.hook(sender.name, call);
      expect(first.body).toEqual({ received: true, eventId: expect.any(String) });
      const again = await running.hook(sender.name, call);
      expect([again.status, again.body.duplicate]).toEqual([200, true]);
      await running.drain();
      const [record, ...others] = await running.rows<{ data: string }>("SELECT data FROM record WHERE written_by = ?1", `relay:${sender.name}`);
      const value = "json" in sender.example ? sender.example.json : sender.example.form;
      const said = Object.fromEntries(Object.entries(sender.map).map(([name, path]) => [name, read(value, path)]));
      expect([JSON.parse(record?.data ?? "{}"), others]).toEqual([said, []]);
      expect(Object.values(said)).not.toContain("undefined");
    });

    test("a changed byte, another secret and a stale request are rejected", async () => {
      const signer = signerOf(sender);
      const outcomes: unknown[] = [];
      const tell = async (call: Awaited<ReturnType<typeof signExample>>) => {
        const { status, body } = await running.hook(sender.name, call);
        outcomes.push([status, body.code]);
      };
      const good = await signExample(sender);
      if (signer.unsigned === undefined) {
        const body = changeByte(good.body);
        await tell({ ...good, body });
      }
      await tell(await signExample(sender, { secret: signer.otherSecret ?? secretOf(signer).replace("Q", "R") }));
      if (signer.timed === true) await tell(await signExample(sender, { nowMs: running.clock.now() - 11 * MINUTE_MS }));
      expect(new Set(outcomes.map(String))).toEqual(new Set(["401,bad_signature"]));
    });
  });
}

/** Changes the last letter or digit, so that the body stays valid JSON or a valid form. */
function changeByte(body: string): string {
  const at = body.search(/[A-Za-z0-9][^A-Za-z0-9]*$/);
  return body.slice(0, at) + (body[at] === "1" ? "2" : "1") + body.slice(at + 1);
}
