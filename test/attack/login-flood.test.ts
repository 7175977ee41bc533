/** Strangers begin thousands of logins of the command line. A login that its owner is about to approve stays, and another one can begin. */
import { describe, expect, test } from "bun:test";
import { LOGIN_LIFE_MS, MAX_WAITING_LOGINS, MAX_WAITING_LOGINS_PER_PROVIDER } from "../../src/base/limit.ts";
import { beginLogin } from "../../src/platform/account/login.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import type { Writer } from "../../src/store/port.ts";
import { type FreshStore, openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const OWN = "203.0.113.7";
const sealer = new Sealer(new Uint8Array(32).fill(7));

function beginIn(tx: Writer, source: string, nowMs: number): Promise<string> {
  const digest = (text: string) => sealer.digest(text);
  return beginLogin(tx, { machine: "laptop", account: "ann", source, digest, nowMs }).then(({ login }) => login.id);
}

async function begin({ store, clock }: FreshStore, source: string): Promise<string> {
  await clock.advance(1);
  return await store.write("app", (tx) => beginIn(tx, source, clock.now()));
}

/** Begins this many logins, a millisecond apart. Returns how many were refused. */
async function flood({ store, clock }: FreshStore, count: number, from: (n: number) => string): Promise<number> {
  const startMs = clock.now() + 1;
  const refused = await store.write("app", async (tx) => {
    let codes = 0;
    for (let n = 0; n < count; n++) {
      await beginIn(tx, from(n), startMs + n).catch((error: { code?: string }) => {
        expect(error.code).toBe("login_capped");
        codes += 1;
      });
    }
    return codes;
  });
  await clock.advance(count);
  return refused;
}

async function waitingOf({ store, clock }: FreshStore, source = "%"): Promise<string[]> {
  const sql = "SELECT id FROM login_request WHERE state = 'waiting' AND source LIKE ?1 AND expires_at > ?2 ORDER BY id";
  return (await store.read((tx) => tx.all<{ id: string }>(sql, source, clock.now()))).map(({ id }) => id);
}

describe("a waiting login stays", () => {
  const floods: [string, (n: number) => string, number][] = [
    ["1,100 logins of as many addresses, each of its own network", (n) => `198.${n >> 8}.${n & 255}.1`, MAX_WAITING_LOGINS],
    ["1,100 logins of 550 addresses", (n) => `198.${n >> 9}.${(n >> 1) & 255}.1`, MAX_WAITING_LOGINS],
    ["1,100 logins of 110 addresses", (n) => `198.51.${Math.floor(n / 10)}.1`, MAX_WAITING_LOGINS],
    ["1,100 logins of as many /48 of one IPv6 /32", (n) => `2001:db8:${n.toString(16)}:1::/64`, MAX_WAITING_LOGINS_PER_PROVIDER + 1],
    ["1,100 logins of one IPv4 /24", (n) => `198.51.100.${n & 255}`, MAX_WAITING_LOGINS_PER_PROVIDER + 1],
  ];
  test.each(floods)("under %s", async (_, from, most) => {
    const fresh = await openFreshStore();
    const own = await begin(fresh, OWN);
    await flood(fresh, 1_100, from);
    expect(await waitingOf(fresh, OWN)).toEqual([own]);
    expect((await waitingOf(fresh)).length).toBeLessThanOrEqual(most);
  });
});

describe("at the limit of waiting logins", () => {
  test("a login of a new network replaces the second newest one, because its network has several", async () => {
    const fresh = await openFreshStore();
    const from = (n: number) => `198.${n >> 9}.${(n >> 1) & 255}.1`;
    expect(await flood(fresh, MAX_WAITING_LOGINS, from)).toBe(0);
    const before = await waitingOf(fresh);
    const own = await begin(fresh, OWN);
    expect(await waitingOf(fresh)).toEqual([...before.slice(0, -2), ...before.slice(-1), own]);
  });

  test("a login of the network with the most replaces that network's oldest, and both logins of another network stay", async () => {
    const fresh = await openFreshStore();
    const own = [await begin(fresh, OWN), await begin(fresh, OWN)];
    await flood(fresh, 1_100, (n) => `198.${n >> 9}.${(n >> 1) & 255}.1`);
    expect(await waitingOf(fresh, OWN)).toEqual(own);
    own.push(await begin(fresh, OWN));
    expect(await waitingOf(fresh, OWN)).toEqual(own.slice(1));
  });

  test("a login of one more network is refused until the first one ends", async () => {
    const fresh = await openFreshStore();
    const startMs = fresh.clock.now() + 1;
    await flood(fresh, MAX_WAITING_LOGINS, (n) => `198.${n >> 8}.${n & 255}.1`);
    const refusal = await refusalOf(() => begin(fresh, OWN));
    expect([refusal.code, refusal.extra.resetAtMs]).toEqual(["login_capped", startMs + LOGIN_LIFE_MS]);
    expect(refusal.message).toContain("1000 logins of this server wait for an owner's answer");
    await fresh.clock.advance(LOGIN_LIFE_MS);
    await begin(fresh, OWN);
  });
});
