import { beforeEach, describe, expect, test } from "bun:test";
import { listAudit } from "../../src/platform/audit/audit.ts";
import {
  findSenderAddress,
  findSenderDomain,
  removeSenderDomain,
  type SenderDomainInput,
  saveSenderDomain,
  type TxtResolver,
  verifySenderDomain,
  viewSenderDomain,
} from "../../src/platform/mail/sender-domain.ts";
import { openFreshStore, refusalOf } from "../kit/fresh-store.ts";

const { store, clock, environment } = await openFreshStore();
const environmentId = (await environment("production")).id;
const by = "owner:a@example.com";
const save = (input: SenderDomainInput) => store.write("dashboard", (tx) => saveSenderDomain(tx, { environmentId, by, nowMs: clock.now() }, input));
const verify = (resolveTxt: TxtResolver) => verifySenderDomain(store, { resolveTxt, clock }, { environmentId, by });
const address = (kind: "event" | "account") => store.read((tx) => findSenderAddress(tx, environmentId, kind));
const recordOf = async () => {
  const row = await store.read((tx) => findSenderDomain(tx, environmentId));
  if (row === null) throw new Error("No domain is set.");
  return viewSenderDomain(row).record;
};
/** DNS that contains the record's value among other values. */
const published =
  (value: string): TxtResolver =>
  async () => ["v=spf1 -all", value];
const empty: TxtResolver = async () => [];
const broken: TxtResolver = () => Promise.reject(new Error("ETIMEOUT"));

beforeEach(() => store.write("app", (tx) => removeSenderDomain(tx, { environmentId, by, nowMs: clock.now() })));

describe("a sender domain", () => {
  test("starts unverified with a TXT record to create, and sends nothing", async () => {
    const view = viewSenderDomain(await save({ domain: "Shop.Example." }));
    expect(view).toMatchObject({
      domain: "shop.example",
      verified: false,
      eventWord: "event",
      accountWord: "account",
    });
    expect(view.record).toEqual({
      type: "TXT",
      name: "_relay-service.shop.example",
      value: expect.stringMatching(/^relay-service-verification=[\w-]{32}$/),
    });
    expect(await address("event")).toBeNull();
  });

  test("is verified once the record exists, and each kind has its local part", async () => {
    await save({ domain: "shop.example", accountWord: "billing" });
    const asked: string[] = [];
    const { value } = await recordOf();
    const { domain } = await verify(async (name) => {
      asked.push(name);
      return [value];
    });
    expect([domain.verifiedAt, asked]).toEqual([clock.now(), ["_relay-service.shop.example"]]);
    expect([await address("event"), await address("account")]).toEqual(["event@shop.example", "billing@shop.example"]);
  });

  test.each<[string, TxtResolver]>([
    ["no record", empty],
    ["another token", published("relay-service-verification=AAAA")],
    ["the token inside other text", async () => [`x ${(await recordOf()).value}`]],
  ])("stays unverified with %s", async (_rule, resolver) => {
    await save({ domain: "shop.example" });
    const { domain, message } = await verify(resolver);
    expect([domain.verifiedAt, domain.checkedAt]).toEqual([null, clock.now()]);
    expect(message).toContain("does not have the expected value yet");
  });

  test("loses its verification when a check finds no record, but not when DNS fails", async () => {
    await save({ domain: "shop.example" });
    await verify(published((await recordOf()).value));
    await verify(broken);
    expect(await address("event")).toBe("event@shop.example");
    await verify(empty);
    expect(await address("event")).toBeNull();
  });

  test("keeps token and verification when only a local part changes, and another domain starts again", async () => {
    const first = await save({ domain: "shop.example" });
    await verify(published((await recordOf()).value));
    await save({ domain: "shop.example", eventWord: "news" });
    expect(await address("event")).toBe("news@shop.example");
    const other = await save({ domain: "other.example" });
    expect(other.verificationToken).not.toBe(first.verificationToken);
    expect(await address("event")).toBeNull();
  });

  test("that changes during a DNS look-up is not verified by the old domain's answer", async () => {
    await save({ domain: "shop.example" });
    const { value } = await recordOf();
    await verify(async () => {
      await save({ domain: "other.example" });
      return [value];
    });
    expect(await address("event")).toBeNull();
  });

  test("is stored as IDNA in ASCII", async () => {
    expect((await save({ domain: "bücher.example" })).domain).toBe("xn--bcher-kva.example");
  });

  test.each<[string, SenderDomainInput]>([
    ["an address", { domain: "a@shop.example" }],
    ["a URL", { domain: "https://shop.example" }],
    ["one label", { domain: "localhost" }],
    ["an IP address", { domain: "192.0.2.1" }],
    ["nothing", { domain: "" }],
    ["a line break", { domain: "shop.example\r\nX: y" }],
    ["a local part with an @", { domain: "shop.example", eventWord: "a@b" }],
    ["a local part with a space", { domain: "shop.example", eventWord: "a b" }],
    ["an empty local part", { domain: "shop.example", accountWord: "" }],
    ["a local part with two dots", { domain: "shop.example", eventWord: "a..b" }],
  ])("refuses %s", async (_rule, input) => {
    expect((await refusalOf(() => save(input))).code).toBe("invalid_input");
  });

  test("cannot be verified if none is set", async () => {
    expect((await refusalOf(() => verify(empty))).code).toBe("not_found");
  });

  test("has an audit row with before and after for every change", async () => {
    await save({ domain: "audited.example" });
    await verify(published((await recordOf()).value));
    await verify(published((await recordOf()).value));
    const filter = { target: "sender_domain:audited.example" };
    const { items } = await store.read((tx) => listAudit(tx, environmentId, filter, { limit: 9, after: null }));
    expect(items).toMatchObject([
      { actor: by, before: { verified: false }, after: { verified: true } },
      { actor: by, before: null, after: { verified: false } },
    ]);
  });
});
