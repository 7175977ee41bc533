/** Tests unsubscribing from event mail: the page and the one-click link of a mail, and the owner's view. */
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

/** Sends the request of a mail program's one-click unsubscribe (RFC 8058). */
const click = (to = path) =>
  fetch(api.base + to, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "List-Unsubscribe=One-Click",
  });
const stops = async () => (await api.call(`${api.E}/mail/stops`, { session: true })).json.items;

describe("the unsubscribe link", () => {
  test("asks for a confirmation when opened and changes nothing, because mail scanners open every link", async () => {
    const before = await api.snapshot();
    const page = await fetch(api.base + path);
    const text = await page.text();
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(text).toContain('<form method="post">');
    expect(text).not.toContain("ada@example.com");
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(changesBetween(before, await api.snapshot())).toEqual({});
  });

  test("clicked once or again stops the person's event mail with one audit row, and needs no cookie or key", async () => {
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
    ["a truncated digest", (own) => own.slice(0, -1)],
    ["nothing", () => "/mail/stop/x"],
  ])("made with %s is not found, and stops no mail", async (_rule, change) => {
    for (const answer of [await click(change(path)), await fetch(api.base + change(path))])
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([404, "not_found"]);
    expect(await stops()).toEqual([]);
  });

  test("of an erased person is not found", async () => {
    await api.call(`${api.E}/persons/${personId}`, { method: "DELETE", session: true });
    expect((await click()).status).toBe(404);
  });

  test("rejects a body longer than a click's", async () => {
    const answer = await fetch(api.base + path, { method: "POST", body: "x".repeat(2_000) });
    expect(answer.status).toBe(413);
    expect(await stops()).toEqual([]);
  });
});

describe("an owner", () => {
  const put = (stopped: boolean, id = personId) => api.call(`${api.E}/persons/${id}/mail-stop`, { method: "PUT", body: { stopped }, session: true });

  test("sees since when a person is unsubscribed, and can revert it", async () => {
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

  test("can unsubscribe a person, and gets an error for an unknown one", async () => {
    expect((await put(true)).json.mailStop.stoppedAt).toBe("2026-01-15T12:00:00.000Z");
    expect(await stops()).toHaveLength(1);
    expect((await put(true, "per_none")).status).toBe(404);
  });

  test("pages through the list, newest first", async () => {
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
