import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../src/base/limit.ts";
import { createOwner, setOwnerPassword } from "../../src/platform/account/owner.ts";
import {
  createSession,
  createSigninLink,
  deleteEndedSessions,
  extendSession,
  findSession,
  findSigninLink,
  isSessionExtensionDue,
  redeemSigninLink,
  SESSION_LIFE_MS,
  type Session,
  signOut,
} from "../../src/platform/account/session.ts";
import { SigninCap } from "../../src/platform/account/signin-cap.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";
import { VirtualClock } from "../kit/virtual-clock.ts";

const { store, clock } = await openFreshStore();
const owner = await store.write("app", (tx) => createOwner(tx, { email: "ada@example.com", passwordHash: null, nowMs: clock.now() }));
const start = () => store.write("app", (tx) => createSession(tx, owner.id, clock.now()));
const find = (token: string) => store.read((tx) => findSession(tx, token, clock.now()));
async function requireSession(token: string): Promise<Session> {
  const session = await find(token);
  if (session === null) throw new Error("No session.");
  return session;
}

describe("a session", () => {
  test("is stored as a hash, never as its token", async () => {
    const { token } = await start();
    const rows = await store.read((tx) => tx.all<{ token_hash: Uint8Array }>("SELECT * FROM session"));
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(Buffer.from(rows[0]?.token_hash ?? []).toString("hex")).toBe(new Bun.CryptoHasher("sha256").update(token).digest("hex"));
    expect((await requireSession(token)).ownerEmail).toBe("ada@example.com");
  });

  test("expires 30 days after its last use, and is extended at most once a day", async () => {
    const { token } = await start();
    expect(isSessionExtensionDue(await requireSession(token), clock.now())).toBe(false);
    await clock.advance(DAY_MS);
    const session = await requireSession(token);
    expect(isSessionExtensionDue(session, clock.now())).toBe(true);
    const expiresAt = await store.write("app", (tx) => extendSession(tx, session, clock.now()));
    expect(expiresAt).toBe(clock.now() + SESSION_LIFE_MS);
    expect(isSessionExtensionDue(await requireSession(token), clock.now())).toBe(false);
    await clock.advance(SESSION_LIFE_MS - 1);
    expect(await find(token)).not.toBeNull();
    await clock.advance(1);
    expect(await find(token)).toBeNull();
    await store.write("app", (tx) => deleteEndedSessions(tx, clock.now()));
    expect(await store.read((tx) => tx.all("SELECT 1 FROM session"))).toEqual([]);
  });

  test("is not found by a wrong, truncated or empty token", async () => {
    const { token } = await start();
    for (const wrong of ["", token.slice(1), `${token}x`, token.toLowerCase(), `${token.slice(0, -1)}\u0000`]) {
      expect(await find(wrong)).toBeNull();
    }
  });

  test("ends by its own sign-out, or with the owner's other sessions when the password changes", async () => {
    const tokens = [(await start()).token, (await start()).token, (await start()).token];
    const [first = "", second = "", third = ""] = tokens;
    const session = await requireSession(first);
    await store.write("app", (tx) => signOut(tx, session.id));
    expect([await find(first), (await find(second)) !== null]).toEqual([null, true]);
    await store.write("app", (tx) => setOwnerPassword(tx, owner.id, "a hash", clock.now()));
    expect([await find(second), await find(third)]).toEqual([null, null]);
  });
});

describe("a one-time link", () => {
  const make = (kind: "setup" | "reset" | "local", ownerId: string | null = null) =>
    store.write("app", (tx) => createSigninLink(tx, { kind, ownerId, nowMs: clock.now() }));
  const redeem = (token: string, kind: "setup" | "reset" | "local") =>
    store.write("app", (tx) => redeemSigninLink(tx, { token, kind, nowMs: clock.now() }));

  test("works once, and a lookup does not use it", async () => {
    const { token } = await make("reset", owner.id);
    expect((await store.read((tx) => findSigninLink(tx, token, clock.now())))?.ownerId).toBe(owner.id);
    expect((await redeem(token, "reset")).ownerId).toBe(owner.id);
    expect((await refusalOf(() => redeem(token, "reset"))).code).toBe("unauthenticated");
  });

  test("succeeds for only one of two concurrent uses", async () => {
    const { token } = await make("local");
    const ends = await Promise.allSettled([redeem(token, "local"), redeem(token, "local")]);
    expect(ends.map((end) => end.status).sort()).toEqual(["fulfilled", "rejected"]);
  });

  test("does not work as another kind of link", async () => {
    const { token } = await make("local");
    expect((await refusalOf(() => redeem(token, "setup"))).code).toBe("unauthenticated");
    expect((await redeem(token, "local")).kind).toBe("local");
  });

  test("for set-up replaces the previous one, and several local links are valid at once", async () => {
    const unowned = (await openFreshStore()).store;
    const setup = { kind: "setup", ownerId: null, nowMs: clock.now() } as const;
    const old = await unowned.write("app", (tx) => createSigninLink(tx, setup));
    const next = await unowned.write("app", (tx) => createSigninLink(tx, setup));
    const use = ({ token }: { token: string }) => unowned.write("app", (tx) => redeemSigninLink(tx, { ...setup, token }));
    expect((await refusalOf(() => use(old))).code).toBe("unauthenticated");
    expect((await use(next)).kind).toBe("setup");
    const [one, two] = [await make("local"), await make("local")];
    expect([(await redeem(one.token, "local")).kind, (await redeem(two.token, "local")).kind]).toEqual(["local", "local"]);
  });

  test("expires: set-up after a day, reset after an hour, local after ten minutes", async () => {
    for (const [kind, lifeMs] of [
      ["setup", DAY_MS],
      ["reset", 3_600_000],
      ["local", 600_000],
    ] as const) {
      const { token, expiresAt } = await make(kind);
      expect(expiresAt).toBe(clock.now() + lifeMs);
      await clock.advance(lifeMs);
      expect((await refusalOf(() => redeem(token, kind))).code).toBe("unauthenticated");
    }
  });
});

describe("sign-in attempts", () => {
  const attempt = (cap: SigninCap, times: number, address: (n: number) => string, account: (n: number) => string) => {
    for (let n = 0; n < times; n++) cap.count(address(n), account(n));
  };

  test("for one account are limited to 10 in 15 minutes, from any number of addresses", async () => {
    const own = new VirtualClock(1_000);
    const cap = new SigninCap(own);
    attempt(
      cap,
      10,
      (n) => `10.0.0.${n}`,
      () => "Ada@example.com ",
    );
    const refusal = await refusalOf(() => cap.count("10.0.1.1", "ada@EXAMPLE.com"));
    expect([refusal.code, refusal.extra.resetAtMs]).toEqual(["signin_capped", 901_000]);
    own.jump(DAY_MS);
    expect((await refusalOf(() => cap.count("10.0.1.1", "ada@example.com"))).code).toBe("signin_capped");
    await own.advance(900_000);
    cap.count("10.0.1.1", "ada@example.com");
  });

  test("from one address are limited to 30 in 15 minutes, for any number of accounts", async () => {
    const cap = new SigninCap(new VirtualClock(0));
    attempt(
      cap,
      30,
      () => "10.0.0.1",
      (n) => `a${n}@example.com`,
    );
    expect((await refusalOf(() => cap.count("10.0.0.1", "new@example.com"))).code).toBe("signin_capped");
    cap.count("10.0.0.2", "new@example.com");
  });

  test("by other addresses never block an address from which the account has signed in", async () => {
    const cap = new SigninCap(new VirtualClock(0));
    const place = { kind: "address", name: "10.0.0.1" } as const;
    attempt(
      cap,
      10,
      (n) => `10.0.1.${n}`,
      () => "ada@example.com",
    );
    expect((await refusalOf(() => cap.count("10.0.2.1", "ada@example.com"))).code).toBe("signin_capped");
    for (let n = 0; n < 10; n++) cap.count("10.0.0.1", "Ada@example.com", place);
    expect((await refusalOf(() => cap.count("10.0.0.1", "ada@example.com", place))).message).toContain("10 sign-in attempts from this address");
  });

  test("that succeed do not count", async () => {
    const cap = new SigninCap(new VirtualClock(0));
    for (let n = 0; n < 100; n++) {
      cap.count("10.0.0.1", "ada@example.com");
      cap.releaseAttempt("10.0.0.1", "ada@example.com");
    }
    attempt(
      cap,
      10,
      () => "10.0.0.1",
      () => "ada@example.com",
    );
    expect((await refusalOf(() => cap.count("10.0.0.1", "ada@example.com"))).code).toBe("signin_capped");
  });
});
