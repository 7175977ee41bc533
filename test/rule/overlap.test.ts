/** Rotation of a receiver secret with an overlap: which secrets verify, whose they are in the meantime, and what the API shows. */
import { describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { LiveRelays } from "../../src/rules/relay/live-relay.ts";
import { deletePreviousSecrets, prepareSecret, readSecretSlot, storeSecret } from "../../src/rules/relay/secret-rotation.ts";
import { receiveRequest } from "../../src/rules/verify/received-request.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";
import { ECDSA, HMAC, makeRelayKit, receiver, sealer } from "../kit/relay-kit.ts";

const OLD = "0ldSecret-of-thirty-Characters";
const NEW = "newSecret-of-thirty-Character5";
const THIRD = "th1rdSecret-of-thirty-Chars-ok";
const HOUR_S = 3_600;
const BODY = Buffer.from('{"id":"a"}');

const fresh = await openFreshStore();
const { store, clock } = fresh;
const kit = makeRelayKit(fresh);
let serial = 0;

async function makeRelay(secret = OLD, verify: object = HMAC): Promise<string> {
  const name = `relay-${++serial}`;
  await kit.create(receiver(name, verify), { secret });
  return name;
}

async function rotate(name: string, value: string | null, overlapSeconds?: number, environment: "development" | "production" = "development") {
  const context = await kit.context(environment);
  const slot = await store.read((tx) => readSecretSlot(tx, context.environment.id, name));
  const prepared = prepareSecret(slot, value, sealer, clock.now());
  return store.write("dashboard", (tx) => storeSecret(tx, context, prepared, overlapSeconds));
}

/** Checks whether a request with this signature verifies now, with newly loaded relays. */
async function verifies(name: string, signature: string): Promise<boolean> {
  const live = new LiveRelays({ store, sealer, baseUrl: () => "https://relay.example.com" });
  const [relay] = (await live.current()).receiversOf("app_test", name);
  if (relay === undefined) throw new Error("No such relay.");
  const call = receiveRequest({
    headers: new Headers({ "x-signature": signature }),
    body: BODY,
    search: "",
    receiverUrl: relay.receiver.url,
    nowMs: clock.now(),
  });
  return relay.receiver.verifier?.verify(call).verified ?? false;
}

const hmac = (secret: string): string => createHmac("sha256", secret).update(BODY).digest("hex");

async function whatVerifies(name: string): Promise<string[]> {
  const verified: string[] = [];
  for (const [label, secret] of Object.entries({ old: OLD, new: NEW, third: THIRD })) if (await verifies(name, hmac(secret))) verified.push(label);
  return verified;
}

describe("a rotated secret", () => {
  test("replaces the old one at once unless an overlap is asked for", async () => {
    const name = await makeRelay();
    expect(await rotate(name, NEW)).toEqual({});
    expect(await whatVerifies(name)).toEqual(["new"]);
  });

  test("verifies together with the old one until the overlap ends, and is the only one afterwards", async () => {
    const name = await makeRelay();
    expect(await rotate(name, NEW, HOUR_S)).toEqual({
      previousUntil: new Date(clock.now() + HOUR_S * 1_000).toISOString(),
    });
    expect(await whatVerifies(name)).toEqual(["old", "new"]);
    await clock.advance(HOUR_S * 1_000 - 1);
    expect(await whatVerifies(name)).toEqual(["old", "new"]);
    await clock.advance(1);
    expect(await whatVerifies(name)).toEqual(["new"]);
  });

  test("ends the old one by the request's time, without a reload of the relays", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    const live = new LiveRelays({ store, sealer, baseUrl: () => "https://relay.example.com" });
    const [relay] = (await live.current()).receiversOf("app_test", name);
    const at = (nowMs: number) =>
      relay?.receiver.verifier?.verify(
        receiveRequest({
          headers: new Headers({ "x-signature": hmac(OLD) }),
          body: BODY,
          search: "",
          receiverUrl: "",
          nowMs,
        }),
      ).verified;
    expect([at(clock.now()), at(clock.now() + HOUR_S * 1_000)]).toEqual([true, false]);
  });

  test("that is minted overlaps too, and is shown only now", async () => {
    const name = await makeRelay();
    const { receiverSecret = "" } = await rotate(name, null, HOUR_S);
    expect(await verifies(name, hmac(receiverSecret))).toBe(true);
    expect(await verifies(name, hmac(OLD))).toBe(true);
  });

  test("twice within an overlap leaves the last two, never three", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    await rotate(name, THIRD, HOUR_S);
    expect(await whatVerifies(name)).toEqual(["new", "third"]);
  });

  test("without an overlap ends a running overlap", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    await rotate(name, THIRD);
    expect(await whatVerifies(name)).toEqual(["third"]);
  });

  test("stored again with an overlap, as after a lost response, keeps the old one and moves the end", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    await rotate(name, NEW, 2 * HOUR_S);
    await clock.advance(HOUR_S * 1_000);
    expect(await whatVerifies(name)).toEqual(["old", "new"]);
  });

  test("stored again without an overlap ends the running overlap", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    await rotate(name, NEW);
    expect(await whatVerifies(name)).toEqual(["new"]);
  });

  test("that is a public key overlaps with the key before it", async () => {
    const pairs = [generateKeyPairSync("ec", { namedCurve: "P-256" }), generateKeyPairSync("ec", { namedCurve: "P-256" })] as const;
    const [old, next] = pairs.map(({ publicKey }) => publicKey.export({ type: "spki", format: "pem" }).toString());
    const name = await makeRelay(old, ECDSA);
    await rotate(name, next ?? "", HOUR_S);
    const signed = pairs.map(({ privateKey }) => sign("sha256", BODY, privateKey).toString("hex"));
    expect(await Promise.all(signed.map((signature) => verifies(name, signature)))).toEqual([true, true]);
    await clock.advance(HOUR_S * 1_000);
    expect(await Promise.all(signed.map((signature) => verifies(name, signature)))).toEqual([false, true]);
  });

  test("is deleted with its overlap when the recipe changes from secret to key", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    await kit.update(name, receiver(name, ECDSA), 1);
    await kit.update(name, receiver(name, HMAC), 2);
    expect(await whatVerifies(name)).toEqual([]);
  });

  test("keeps used signatures until a day after the old one's last moment", async () => {
    const name = await makeRelay();
    const { id } = await fresh.environment("development");
    await rotate(name, NEW, HOUR_S);
    const gone = await store.read((tx) => tx.all("SELECT until FROM retired_secret WHERE environment_id = ?1 AND relay_name = ?2", id, name));
    expect(gone).toEqual([{ until: clock.now() + HOUR_S * 1_000 + 86_400_000 }]);
  });
});

describe("two environments", () => {
  test("cannot have the same secret while the overlap lets it verify, and can afterwards", async () => {
    const name = await makeRelay();
    await kit.create(receiver(name, HMAC), { secret: THIRD }, "production");
    await rotate(name, NEW, HOUR_S);
    for (const taken of [OLD, NEW]) {
      const refusal = await refusalOf(() => rotate(name, taken, 0, "production"));
      expect([refusal.code, refusal.message]).toEqual(["invalid_input", expect.stringContaining("development")]);
    }
    await clock.advance(HOUR_S * 1_000);
    expect(await rotate(name, OLD, 0, "production")).toEqual({});
  });
});

describe("the view of a rotated secret", () => {
  test("shows until when the old one verifies, as the audit does", async () => {
    const name = await makeRelay();
    expect((await kit.view(name)).secret).not.toHaveProperty("previousUntil");
    await rotate(name, NEW, HOUR_S);
    const until = new Date(clock.now() + HOUR_S * 1_000).toISOString();
    expect((await kit.view(name)).secret).toHaveProperty("previousUntil", until);
    const audit = await store.read((tx) =>
      tx.get<{ after: string }>("SELECT after FROM audit WHERE target = ?1 ORDER BY seq DESC LIMIT 1", `relay:${name}`),
    );
    expect(JSON.parse(audit?.after ?? "{}").secret.previousUntil).toBe(until);
    await clock.advance(HOUR_S * 1_000);
    expect((await kit.view(name)).secret).not.toHaveProperty("previousUntil");
  });

  test("never shows the old secret, which is deleted when its time ends", async () => {
    const name = await makeRelay();
    await rotate(name, NEW, HOUR_S);
    const kept = () => store.read((tx) => tx.get("SELECT 1 FROM relay WHERE name = ?1 AND previous_secret IS NOT NULL", name));
    await store.write("app", (tx) => deletePreviousSecrets(tx, clock.now()));
    expect(await kept()).not.toBeNull();
    await store.write("app", (tx) => deletePreviousSecrets(tx, clock.now() + HOUR_S * 1_000));
    expect(await kept()).toBeNull();
    expect(JSON.stringify(await kit.view(name))).not.toContain(OLD);
  });
});

test("a relay without its own secret has none to overlap", async () => {
  const name = `relay-${++serial}`;
  await kit.create(receiver(name, ECDSA));
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = publicKey.export({ type: "spki", format: "pem" }).toString();
  expect(await rotate(name, key, HOUR_S)).toEqual({});
});
