/**
 * Strangers at the dashboard's sign-in who guess, fill the limits' memory, or lock the owner out: how many of their passwords are checked, and
 * whether the owner can still sign in.
 */

import { describe, expect, test } from "bun:test";
import { KNOWN_DEVICE_LIFE_MS, MINUTE_MS } from "../../src/base/limit.ts";
import { Limiter } from "../../src/base/limiter.ts";
import { Refusal } from "../../src/base/refusal.ts";
import { createOwner, findOwnerByEmail, hashPassword, PasswordQueue, removeOwner } from "../../src/platform/account/owner.ts";
import { deleteOldOwnerNetworks } from "../../src/platform/account/owner-network.ts";
import { createSigninLink } from "../../src/platform/account/session.ts";
import { SigninCap } from "../../src/platform/account/signin-cap.ts";
import { type ApiServer, type Reply, startApi } from "../kit/api-server.ts";
import { START_MS, VirtualClock } from "../kit/virtual-clock.ts";

const OWNER = "bea@example.com";
const PASSWORD = "correct horse battery";

/** Counts the attempts that the limit lets through to the password. */
function countLooks(attempts: Iterable<() => void>): number {
  let looks = 0;
  for (const attempt of attempts) {
    try {
      attempt();
      looks += 1;
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== "signin_capped") throw error;
    }
  }
  return looks;
}

function* times<Result>(count: number, make: (n: number) => Result): Generator<Result> {
  for (let n = 0; n < count; n++) yield make(n);
}

describe("within a quarter of an hour the service checks", () => {
  const rows: [string, number, number, (n: number) => [address: string, account: string]][] = [
    ["30 of one address, on as many accounts", 25_000, 30, (n) => ["203.0.113.1", `a${n}@example.com`]],
    ["10 on one account, from as many addresses", 25_000, 10, (n) => [`10.0.${n >> 8}.${n & 255}`, OWNER]],
    ["10 on one account, however it is written", 100, 10, (n) => [`10.0.0.${n}`, n % 2 ? OWNER : " BEA@Example.com "]],
    ["60 of one IPv6 /48, from as many of its /64", 25_000, 60, (n) => [`2001:db8:1:${n.toString(16)}::/64`, `a${n}@example.com`]],
    ["30 of one IPv6 /64", 1_000, 30, (n) => ["2001:db8:1:1::/64", `a${n}@example.com`]],
  ];
  test.each(rows)("%s", (_, guesses, looked, at) => {
    const cap = new SigninCap(new VirtualClock(START_MS));
    expect(countLooks(times(guesses, (n) => () => cap.count(...at(n))))).toBe(looked);
  });

  test("10 guesses on one account, even with 25,000 refused ones on other accounts in between", () => {
    const cap = new SigninCap(new VirtualClock(START_MS));
    const guess = (address: string) => countLooks(times(30, () => () => cap.count(address, OWNER)));
    expect(guess("203.0.113.1")).toBe(10);
    countLooks(times(25_000, (n) => () => cap.count("203.0.113.1", `a${n}@example.com`)));
    expect(guess("203.0.113.2")).toBe(0);
  });
});

describe("a full window", () => {
  const WINDOW_MS = 15 * MINUTE_MS;
  test("is not forgotten before it ends, however many other names come", async () => {
    const clock = new VirtualClock(START_MS);
    const cap = new Limiter(clock, 2, WINDOW_MS, { maxWindows: 100 });
    for (let n = 0; n < 2; n++) cap.count("full");
    for (let n = 0; n < 10_000; n++) if (cap.fullUntil(`name ${n}`) === null) cap.count(`name ${n}`);
    expect(cap.fullUntil("full")).toBe(START_MS + WINDOW_MS);
    await clock.advance(WINDOW_MS);
    expect(cap.fullUntil("full")).toBeNull();
  });

  test("refuses new names if all windows in memory are full, until the first of them ends", async () => {
    const clock = new VirtualClock(START_MS);
    const cap = new Limiter(clock, 1, WINDOW_MS, { maxWindows: 100 });
    for (let n = 0; n < 100; n++) cap.count(`full ${n}`);
    expect(cap.fullUntil("new")).toBe(START_MS + WINDOW_MS);
    await clock.advance(WINDOW_MS);
    expect(cap.fullUntil("new")).toBeNull();
    cap.count("new");
    expect(cap.fullUntil("new")).toBe(START_MS + 2 * WINDOW_MS);
  });
});

/** Counts the entries of maps that the work iterates over. */
function countEntries(work: () => void): number {
  const iterator = Object.getPrototypeOf(new Map().entries());
  const { next } = iterator;
  let entries = 0;
  iterator.next = function (this: MapIterator<unknown>) {
    entries += 1;
    return next.call(this);
  };
  try {
    work();
  } finally {
    iterator.next = next;
  }
  return entries;
}

describe("120,000 names in a limiter of 20,000 windows", () => {
  const cap = new Limiter(new VirtualClock(START_MS), 10, 15 * MINUTE_MS);
  const countAll = (names: number, times: number, of: string): void => {
    for (let n = 0; n < names; n++) for (let one = 0; one < times; one++) cap.count(`${of} ${n}`);
  };

  test("forget the least used windows, keep the nearly full ones, and do not cost a look at all windows for each name", () => {
    countAll(2, 9, "near");
    countAll(20_000, 2, "crowd");
    const names = 100_000;
    const entries = countEntries(() => countAll(names, 1, "flood"));
    // A look at every window for each name would be 20,000 entries.
    expect(entries / names).toBeLessThan(50);
    cap.count("near 0");
    expect([cap.fullUntil("near 0"), cap.fullUntil("near 1")]).toEqual([START_MS + 15 * MINUTE_MS, null]);
    cap.giveBack("near 0");
    expect(cap.fullUntil("near 0")).toBeNull();
  });
});

async function withOwner(api: ApiServer): Promise<void> {
  const passwordHash = await hashPassword(PASSWORD);
  await api.store.write("dashboard", (tx) => createOwner(tx, { email: OWNER, passwordHash, nowMs: START_MS }));
}

function signIn(api: ApiServer, from: { address: string; password?: string; email?: string; cookie?: string }): Promise<Reply> {
  const { address, password = "not the password", email = OWNER, cookie } = from;
  return api.call("/api/session", {
    method: "POST",
    body: { email, password },
    headers: {
      origin: api.base,
      "x-forwarded-for": address,
      ...(cookie === undefined ? {} : { cookie }),
    },
  });
}

function deviceOf(reply: Reply): string {
  const cookie = reply.headers.getSetCookie().find((one) => one.startsWith("relay_device="));
  return cookie?.split(";")[0] ?? "";
}

describe("while strangers keep the account's window full, the owner", () => {
  /** Makes 40 guesses from 40 addresses, ten of which are checked. */
  async function besiege(api: ApiServer): Promise<void> {
    const codes: string[] = [];
    for (let n = 0; n < 40; n++) codes.push((await signIn(api, { address: `198.51.100.${n}` })).json.code);
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(10);
  }

  test("signs in from a browser that signed in before, after a restart and from another address", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const cookie = deviceOf(await signIn(api, { address: "203.0.113.1", password: PASSWORD }));
    expect(cookie).toMatch(/^relay_device=\d+\.[\w-]{22}\.[\w-]{43}$/);
    await api.restart();
    await besiege(api);
    expect((await signIn(api, { address: "203.0.113.9", password: PASSWORD })).json.code).toBe("signin_capped");
    expect((await signIn(api, { address: "203.0.113.9", password: PASSWORD, cookie })).status).toBe(200);
  });

  const homes: [string, string, string][] = [
    ["an IPv4 address", "203.0.113.1", "203.0.113.1"],
    ["an IPv6 /64", "2001:db8:1:1::5", "2001:db8:1:1::9"],
  ];
  test.each(homes)("signs in without a cookie from %s that signed in before, also after a restart", async (_, first, later) => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    await signIn(api, { address: first, password: PASSWORD });
    await besiege(api);
    expect((await signIn(api, { address: later, password: PASSWORD })).status).toBe(200);
    await api.restart();
    await besiege(api);
    expect((await signIn(api, { address: "203.0.113.9", password: PASSWORD })).json.code).toBe("signin_capped");
    expect((await signIn(api, { address: later, password: PASSWORD })).status).toBe(200);
  });

  test("signs in where the reset link was used, and a wrong password makes no place known", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const { token } = await api.store.write("dashboard", async (tx) =>
      createSigninLink(tx, { kind: "reset", ownerId: (await findOwnerByEmail(tx, OWNER))?.id ?? null, nowMs: START_MS }),
    );
    const headers = { origin: api.base, "x-forwarded-for": "203.0.113.1" };
    expect((await api.call("/api/session/reset", { method: "POST", body: { token, password: PASSWORD }, headers })).status).toBe(200);
    await api.restart();
    await besiege(api);
    expect((await signIn(api, { address: "198.51.100.1", password: PASSWORD })).json.code).toBe("signin_capped");
    expect((await signIn(api, { address: "203.0.113.1", password: PASSWORD })).status).toBe(200);
  });

  test("changes the password if signed in", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const reply = await signIn(api, { address: "203.0.113.1", password: PASSWORD });
    await api.restart();
    await besiege(api);
    const changed = await api.call("/api/session/password", {
      method: "PUT",
      body: { current: PASSWORD, password: "another good one" },
      headers: {
        origin: api.base,
        "x-forwarded-for": "203.0.113.9",
        cookie: reply.headers.getSetCookie()[0]?.split(";")[0] ?? "",
      },
    });
    expect(changed.status).toBe(204);
  });
});

describe("the networks of an owner's sign-ins", () => {
  const networks = (api: ApiServer) =>
    api.store.read((tx) => tx.all<{ owner_id: string; seen_at: number }>("SELECT * FROM owner_network ORDER BY seen_at"));
  const signInAt = async (api: ApiServer, count: number) => {
    for (let n = 0; n < count; n++) {
      expect((await signIn(api, { address: `203.0.113.${n}`, password: PASSWORD })).status).toBe(200);
      api.clock.jump(1_000);
    }
  };

  test("are stored as digests of the last 20, without the address", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    await signInAt(api, 25);
    const rows = await networks(api);
    expect(rows.map(({ seen_at }) => seen_at)).toEqual(Array.from({ length: 20 }, (_, n) => START_MS + (n + 5) * 1_000));
    expect(JSON.stringify(rows)).not.toContain("203.0.113");
    await signIn(api, { address: "203.0.113.5", password: PASSWORD });
    expect(await networks(api)).toHaveLength(20);
  });

  test("stay known for 400 days", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    await signInAt(api, 1);
    api.clock.jump(KNOWN_DEVICE_LIFE_MS);
    for (let n = 0; n < 10; n++) await signIn(api, { address: `198.51.100.${n}` });
    expect((await signIn(api, { address: "203.0.113.0", password: PASSWORD })).json.code).toBe("signin_capped");
    await api.store.write("app", (tx) => deleteOldOwnerNetworks(tx, api.clock.now()));
    expect(await networks(api)).toEqual([]);
  });

  test("are deleted with the owner", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    await signInAt(api, 3);
    await api.store.write("dashboard", async (tx) => removeOwner(tx, (await findOwnerByEmail(tx, OWNER))?.id ?? ""));
    expect(await networks(api)).toEqual([]);
  });
});

describe("behind an unnamed proxy, where all clients share one address and strangers use up its attempts and links,", () => {
  const post = (api: ApiServer, path: string, body: object): Promise<Reply> =>
    api.call(path, { method: "POST", body, headers: { origin: api.base } });

  async function makeLink(api: ApiServer, kind: "setup" | "reset"): Promise<string> {
    const made = await api.store.write("dashboard", async (tx) => {
      const owner = kind === "reset" ? await findOwnerByEmail(tx, OWNER) : null;
      return await createSigninLink(tx, { kind, ownerId: owner?.id ?? null, nowMs: START_MS });
    });
    return made.token;
  }

  async function useUp(api: ApiServer, kind: "setup" | "reset"): Promise<string[]> {
    const codes: string[] = [];
    for (let n = 0; n < 30; n++) codes.push((await post(api, "/api/link", { kind, token: `no link ${n}` })).json.code);
    for (let n = 0; n < 32; n++) codes.push((await signIn(api, { address: "", email: `a${n}@example.com` })).json.code);
    return codes;
  }

  test("the owner signs in with a reset link from relay admin reset", async () => {
    await using api = await startApi();
    await withOwner(api);
    const token = await makeLink(api, "reset");
    expect((await useUp(api, "reset")).filter((code) => code === "signin_capped")).toHaveLength(20 + 2);
    expect((await signIn(api, { address: "", password: PASSWORD })).json.code).toBe("signin_capped");
    for (let n = 0; n < 12; n++) expect((await post(api, "/api/link", { kind: "reset", token })).json).toEqual({ live: true });
    const reset = await post(api, "/api/session/reset", { token, password: "another good one" });
    expect([reset.status, reset.json]).toEqual([200, { owner: { email: OWNER } }]);
    expect((await post(api, "/api/session/reset", { token, password: "another good one" })).json.code).toBe("signin_capped");
  });

  test("the set-up link creates the first owner", async () => {
    await using api = await startApi();
    await api.store.write("dashboard", async (tx) => {
      await tx.run("DELETE FROM session");
      await tx.run("DELETE FROM owner");
    });
    const token = await makeLink(api, "setup");
    await useUp(api, "setup");
    expect((await post(api, "/api/link", { kind: "setup", token })).json).toEqual({ live: true });
    const made = await post(api, "/api/setup", { token, email: OWNER, password: PASSWORD });
    expect(made.status).toBe(201);
  });
});

test.each([
  [1_000, 400, "invalid_input"],
  [500_000, 413, "body_too_large"],
])("an email address of %d characters is refused before it is counted, so no window has a name as long as a body", async (length, status, code) => {
  await using api = await startApi();
  const reply = await signIn(api, { address: "", email: `${"a".repeat(length)}@example.com` });
  expect([reply.status, reply.json.code]).toEqual([status, code]);
});

describe("a device's cookie", () => {
  const forged: [string, (cookie: string) => string][] = [
    ["of another account", (cookie) => cookie],
    ["with another name", (cookie) => cookie.replace(/\.[\w-]{22}\./, `.${"A".repeat(22)}.`)],
    ["with a later day", (cookie) => cookie.replace(/=\d+/, (time) => `=${Number(time.slice(1)) + 1}`)],
    ["without its signature", (cookie) => cookie.replace(/[\w-]{43}$/, "A".repeat(43))],
  ];
  test.each(forged)("%s is not accepted", async (what, forge) => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const passwordHash = await hashPassword(PASSWORD);
    await api.store.write("dashboard", (tx) => createOwner(tx, { email: "eve@example.com", passwordHash, nowMs: START_MS }));
    const email = what === "of another account" ? "eve@example.com" : OWNER;
    const cookie = forge(deviceOf(await signIn(api, { address: "203.0.113.1", password: PASSWORD, email })));
    await api.restart();
    for (let n = 0; n < 10; n++) await signIn(api, { address: `198.51.100.${n}` });
    expect((await signIn(api, { address: "203.0.113.9", cookie })).json.code).toBe("signin_capped");
  });

  test("gives ten guesses, no more, and expires after 400 days", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const cookie = deviceOf(await signIn(api, { address: "203.0.113.1", password: PASSWORD }));
    const codes: string[] = [];
    for (let n = 0; n < 12; n++) codes.push((await signIn(api, { address: `10.0.0.${n}`, cookie })).json.code);
    expect(codes.filter((code) => code === "unauthenticated")).toHaveLength(10);
    expect((await signIn(api, { address: "203.0.113.7", password: PASSWORD })).status).toBe(200);
    api.clock.jump(400 * 86_400_000 + 1);
    for (let n = 0; n < 10; n++) await signIn(api, { address: `198.51.100.${n}` });
    expect((await signIn(api, { address: "203.0.113.9", cookie, password: PASSWORD })).json.code).toBe("signin_capped");
  });
});

describe("passwords that wait to be hashed", () => {
  /** Returns work that ends when the test says so. */
  const held = () => {
    let end = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      end = resolve;
    });
    return { work: () => done, end: () => end() };
  };

  test("are limited: 17 of 1,000 at once are accepted, and the others must come again", async () => {
    const queue = new PasswordQueue();
    const first = held();
    const codes: string[] = [];
    const running: Promise<void>[] = [];
    for (let n = 0; n < 1_000; n++) {
      try {
        const place = queue.take("stranger");
        running.push(place.run(first.work).finally(() => place[Symbol.dispose]()));
      } catch (error) {
        codes.push((error as Refusal).code);
      }
    }
    expect([running.length, codes.length, new Set(codes)]).toEqual([17, 983, new Set(["signin_busy"])]);
    first.end();
    await Promise.all(running);
    queue.take("stranger")[Symbol.dispose]();
  });

  test("run one at a time, and those of a known device before every stranger's", async () => {
    const queue = new PasswordQueue();
    const order: string[] = [];
    let most = 0;
    let now = 0;
    const run = async (lane: "known" | "stranger", name: string) => {
      using place = queue.take(lane);
      await place.run(async () => {
        now += 1;
        most = Math.max(most, now);
        await Promise.resolve();
        order.push(name);
        now -= 1;
      });
    };
    await Promise.all([run("stranger", "first"), run("stranger", "second"), run("stranger", "third"), run("known", "owner")]);
    expect([order, most]).toEqual([["first", "owner", "second", "third"], 1]);
  });

  test("are refused over HTTP with a message, count nothing, and do not delay the event loop or the owner", async () => {
    await using api = await startApi({ trustedProxies: ["127.0.0.1"] });
    await withOwner(api);
    const cookie = deviceOf(await signIn(api, { address: "203.0.113.1", password: PASSWORD }));
    const flood = Array.from({ length: 300 }, (_, n) => signIn(api, { address: `10.1.${n >> 7}.${n & 127}`, email: `a${n}@example.com` }));
    const owner = signIn(api, { address: "203.0.113.9", password: PASSWORD, cookie });
    const health = await api.call("/healthz");
    const replies = await Promise.all(flood);
    const busy = replies.filter(({ json }) => json.code === "signin_busy");
    expect(busy.length).toBeGreaterThan(200);
    expect([busy[0]?.status, busy[0]?.json.message]).toEqual([503, expect.stringContaining("retry in a few seconds")]);
    expect([health.status, (await owner).status]).toEqual([200, 200]);
    const at = replies.findIndex(({ json }) => json.code === "signin_busy");
    const turnedAway = { address: `10.1.${at >> 7}.${at & 127}`, email: `a${at}@example.com` };
    for (let n = 0; n < 10; n++) expect((await signIn(api, turnedAway)).json.code).toBe("unauthenticated");
    expect((await signIn(api, turnedAway)).json.code).toBe("signin_capped");
  });
});
