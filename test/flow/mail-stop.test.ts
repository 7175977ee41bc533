/** Stopping event mail: the page and the one click that a mail carries, and the owner's view of it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { makeStopUrl } from "../../src/platform/mail/mail-stop.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { type ApiServer, changesBetween, startApi } from "../kit/api-server.ts";

let api: ApiServer;
let personId: string;
let path: string;

beforeEach(async () => {
  api = await startApi();
  const environmentId = api.environments.development.id;
  const nowMs = api.clock.now();
  const invite = { environmentId, email: "ada@example.com", createdBy: "test", nowMs, invitesPerDay: 200 };
  personId = (await api.store.write("app", (tx) => invitePerson(tx, invite))).person.id;
  path = new URL(makeStopUrl(api.service.sealer, "https://relay.example", { environmentId, personId }) ?? "?").pathname;
});
afterEach(() => api[Symbol.asyncDispose]());

/** As a mail program clicks (RFC 8058). */
const click = (to = path) =>
  fetch(api.base + to, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "List-Unsubscribe=One-Click",
  });
const stops = async () => (await api.call(`${api.E}/mail/stops`, { session: true })).json.items;

describe("the address in a mail", () => {
  test("opened, asks and changes nothing, as mail scanners open every address", async () => {
    const before = await api.snapshot();
    const page = await fetch(api.base + path);
    const text = await page.text();
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain('<form method="post">');
    expect(text).not.toContain("ada@example.com");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("clicked once, or again, stops the person's event mail, audited once, and no cookie or key is needed", async () => {
    const before = await api.snapshot();
    expect([(await click()).status, (await click()).status]).toEqual([200, 200]);
    expect(changesBetween(before, await api.snapshot())).toEqual({ mail_stop: 1, audit: 1 });
    expect(await stops()).toEqual([{ person: personId, email: "ada@example.com", stoppedAt: "2026-01-15T12:00:00.000Z" }]);
    const audit = await api.call(`${api.E}/audit`, { session: true });
    expect(audit.json.items[0]).toMatchObject({
      action: "person.mail_stopped",
      actor: `person:${personId}`,
      target: `person:${personId}`,
    });
  });

  test.each<[string, (path: string) => string]>([
    ["another person's id", (own) => own.replace(/per_[0-9a-f]{4}/, "per_0000")],
    ["another environment", (own) => own.replace(/\/(\d+)\./, "/999.")],
    ["another digest", (own) => own.slice(0, -2) + (own.endsWith("AA") ? "BB" : "AA")],
    ["a digest cut short", (own) => own.slice(0, -1)],
    ["nothing", () => "/mail/stop/x"],
  ])("made with %s is not found, and stops nobody's mail", async (_rule, change) => {
    for (const answer of [await click(change(path)), await fetch(api.base + change(path))])
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([404, "not_found"]);
    expect(await stops()).toEqual([]);
  });

  test("of a person who was erased is not found", async () => {
    await api.call(`${api.E}/persons/${personId}`, { method: "DELETE", session: true });
    expect((await click()).status).toBe(404);
  });

  test("with a longer body than a click is refused", async () => {
    const answer = await fetch(api.base + path, { method: "POST", body: "x".repeat(2_000) });
    expect(answer.status).toBe(413);
    expect(await stops()).toEqual([]);
  });
});

describe("an owner", () => {
  const put = (stopped: boolean, id = personId) => api.call(`${api.E}/persons/${id}/mail-stop`, { method: "PUT", body: { stopped }, session: true });

  test("sees on the person since when they want no event mail, and takes it back", async () => {
    await click();
    const shown = await api.call(`${api.E}/persons/${personId}/mail-stop`, { key: api.keys.dev });
    expect(shown.json).toEqual({ mailStop: { person: personId, stoppedAt: "2026-01-15T12:00:00.000Z" } });
    expect((await put(false)).json).toEqual({ mailStop: { person: personId, stoppedAt: null } });
    expect(await stops()).toEqual([]);
    const audit = await api.call(`${api.E}/audit`, { session: true });
    expect(audit.json.items[0]).toMatchObject({
      action: "person.mail_allowed",
      target: `person:${personId}`,
    });
  });

  test("stops it by hand, and is told who is not there", async () => {
    expect((await put(true)).json.mailStop.stoppedAt).toBe("2026-01-15T12:00:00.000Z");
    expect(await stops()).toHaveLength(1);
    expect((await put(true, "per_none")).status).toBe(404);
  });

  test("pages through the list, the newest first", async () => {
    const ids = [personId];
    await put(true);
    for (const name of ["bo", "cy"]) {
      await api.clock.advance(1_000);
      const made = await api.call(`${api.E}/persons`, {
        method: "POST",
        body: { email: `${name}@example.com` },
        session: true,
      });
      ids.unshift(made.json.person.id);
      await put(true, made.json.person.id);
    }
    const first = await api.call(`${api.E}/mail/stops?limit=2`, { session: true });
    const rest = await api.call(`${api.E}/mail/stops?limit=2&cursor=${first.json.next}`, { session: true });
    const seen = [...first.json.items, ...rest.json.items].map(({ person }) => person);
    expect([seen, rest.json.next]).toEqual([ids, null]);
  });
});
