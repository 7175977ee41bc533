/** Invitations over the mail server of the server: who reads the link, what the list says about the mail, and a link that is sent again. */
import { afterEach, describe, expect, test } from "bun:test";
import { readMailUrl } from "../../src/base/mail-url.ts";
import { SERVER_SCOPE } from "../../src/platform/audit/audit.ts";
import { type ApiServer, startApi } from "../kit/api-server.ts";
import { makeAuthority } from "../kit/certificate.ts";
import { type MailServer, type MailServerOptions, startMailServer } from "../kit/mail-server.ts";

const KIM = "kim@example.com";
const authority = makeAuthority("invitations");

let api: ApiServer;
afterEach(async () => {
  await api[Symbol.asyncDispose]();
});

/** Starts the service with a mail server that has these options. */
async function start(options: Partial<MailServerOptions> = {}, allowPrivate = ["127.0.0.1"]): Promise<MailServer> {
  const mails = await startMailServer({ security: "none", authority, ...options });
  const mailUrl = readMailUrl(`smtp://127.0.0.1:${mails.port}?from=relay@example.com`);
  if (typeof mailUrl === "string") throw new Error(mailUrl);
  api = await startApi({ mailUrl, allowPrivate });
  return mails;
}

const ask = (path: string, body: object) => api.call(path, { method: "POST", session: true, body });
const invite = (more: object = {}) => ask("/api/owners", { email: KIM, memberships: [{ role: "viewer", app: "shop" }], ...more });
const listed = async () => (await api.call("/api/owners", { session: true })).json;
const invitation = async () => (await listed()).owners.find(({ email }: { email: string }) => email === KIM).invitation;
const audited = () =>
  api.store.read((tx) =>
    tx.all<{ action: string; after: string | null }>(
      "SELECT action, after FROM audit WHERE environment_id = ?1 AND target = ?2 ORDER BY seq",
      SERVER_SCOPE,
      `owner:${KIM}`,
    ),
  );

/** Returns the link in the text part of a mail. */
function linkIn({ raw }: { raw: string }): string {
  const text = raw.replaceAll("=\r\n", "").replaceAll("=3D", "=");
  return /\/reset#\S{32}/.exec(text)?.[0].split("#")[1] ?? "";
}
const use = (token: string) =>
  api.call("/api/session/reset", { method: "POST", headers: { origin: api.base }, body: { token, password: "a long password" } });

describe("an invitation by mail", () => {
  test("goes only to the member: no answer, row, log or audit has its link", async () => {
    const mails = await start();
    expect((await listed()).mailsInvitations).toBe(true);
    const { status, json } = await invite();
    expect([status, json.link, json.mail]).toEqual([201, null, { state: "sent", message: null }]);
    expect(json.owner.invitation).toMatchObject({ mail: { state: "sent" } });
    const [mail] = mails.taken;
    expect([mail?.from, mail?.to]).toEqual(["relay@example.com", [KIM]]);
    expect(mail?.raw).toContain(`Subject: Invitation to Relay at ${new URL(api.base).host}`);
    expect(mail?.raw).toContain("ann@example.com invites you");
    const token = linkIn(mail ?? { raw: "" });
    expect(token).toHaveLength(32);
    const stored = `${Bun.inspect([...(await api.snapshot())])}${JSON.stringify(await listed())}${api.logged.join("\n")}`;
    expect(stored).not.toContain(token);
    expect(await audited()).toMatchObject([{ action: "owner.created" }, { action: "owner.invitation_mailed", after: '{"state":"sent"}' }]);
    const signed = await use(token);
    expect([signed.status, signed.json.owner.email]).toEqual([200, KIM]);
    expect((await use(token)).json.code).toBe("unauthenticated");
    expect(await invitation()).toBeNull();
  });

  test("is not mailed if the owner wants the link", async () => {
    const mails = await start();
    const { json } = await invite({ mail: false });
    expect([json.mail, mails.taken]).toEqual([null, []]);
    expect(json.link.url).toContain("/reset#");
    expect(await invitation()).toEqual({ expiresAt: json.link.expiresAt, mail: null });
  });

  test("that is sent again has a new link, and the former one ends", async () => {
    const mails = await start();
    const { owner } = (await invite()).json;
    const again = await ask(`/api/owners/${owner.id}/link`, {});
    expect([again.status, again.json]).toEqual([201, { link: null, mail: { state: "sent", message: null } }]);
    const [first = "", second = ""] = mails.taken.map(linkIn);
    expect((await use(first)).json.code).toBe("unauthenticated");
    expect((await use(second)).status).toBe(200);
  });

  test("expires after a day, and the list has no invitation any more", async () => {
    const mails = await start();
    await invite();
    api.clock.jump(25 * 3_600_000);
    await api.confirmSessions();
    expect(await invitation()).toBeNull();
    expect((await use(linkIn(mails.taken[0] ?? { raw: "" }))).json.code).toBe("unauthenticated");
  });
});

const FAILED: readonly [what: string, options: Partial<MailServerOptions>, allowed: string[], state: string, message: string][] = [
  [
    "the address",
    { refuse: { at: "recipient", code: 550, message: "no such user" } },
    ["127.0.0.1"],
    "failed",
    "The mail server rejected the recipient's address. Check the member's address.",
  ],
  [
    "the sender",
    { refuse: { at: "sender", code: 550, message: "not you" } },
    ["127.0.0.1"],
    "failed",
    "The mail server rejected the sender's address. Check --mail-url (RELAY_MAIL_URL) and the server's log, then send it again.",
  ],
  ["nothing and hangs up after the text", { hangUp: "text" }, ["127.0.0.1"], "unknown", "The mail server closed the connection"],
  ["the connection, because the operator does not allow its address", {}, [], "failed", "its address is not public"],
];
test.each(FAILED)(
  "a mail server that refuses %s: the answer has the link, and the list says why",
  async (_what, options, allowed, state, message) => {
    await start(options, allowed);
    const { status, json } = await invite();
    expect([status, json.mail.state]).toEqual([201, state]);
    expect(json.mail.message).toContain(message);
    expect(await invitation()).toEqual({ expiresAt: json.link.expiresAt, mail: json.mail });
    expect((await audited()).at(-1)).toMatchObject({ action: "owner.invitation_mailed", after: `{"state":"${state}"}` });
    expect((await use(new URL(json.link.url).hash.slice(1))).status).toBe(200);
  },
);

test("a server without a mail server returns the link", async () => {
  api = await startApi();
  expect((await listed()).mailsInvitations).toBe(false);
  const { json } = await invite({ mail: true });
  expect([json.mail, json.link.url]).toEqual([null, expect.stringContaining("/reset#")]);
});
