/** The presets of senders: a valid definition that its recipe identifies, an example event, and vectors from the sender's documentation. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Errors } from "typebox/schema";
import { parseJson, scalarText, writeJson } from "../../src/base/json.ts";
import { makeSampleEvent } from "../../src/insight/simulate/sample.ts";
import { EXPORTERS } from "../../src/interfaces/cli/events/read-export.ts";
import { checkCatalogFile } from "../../src/operator/sync/catalog-file.ts";
import { parseFileText } from "../../src/operator/sync/json-file.ts";
import { type Path, parsePath, readPath } from "../../src/platform/template/template.ts";
import { checkDefinition } from "../../src/rules/relay/definition.ts";
import { findSender, recogniseSender, SENDERS } from "../../src/rules/senders/registry.ts";
import { senderShape } from "../../src/rules/senders/sender.ts";
import { findSecretSource } from "../../src/rules/senders/sender-secret.ts";
import { startCatalog, startDefinition } from "../../src/rules/senders/sender-start.ts";
import type { ReceiverTrigger } from "../../src/rules/trigger/receiver.ts";
import { bindScheme } from "../../src/rules/verify/registry.ts";
import { runCommand } from "../kit/cli-io.ts";
import { makeCall, outcome } from "../kit/sender-call.ts";
import { draftOf, PROVIDERS, PROVIDERS_NOW_MS } from "../kit/sender-example.ts";

function senderOf(name: string) {
  const sender = findSender(name);
  if (sender === null) throw new Error(`no sender ${name}`);
  return sender;
}

const triggerOf = (name: string) => {
  const sender = senderOf(name);
  return { kind: "receiver", verify: sender.verify, map: { ...sender.map }, when: { ...sender.when } } as ReceiverTrigger;
};

describe("every sender", () => {
  test("says how long it repeats a rejected request, where its documentation does", () => {
    const hours = SENDERS.flatMap(({ name, retryHours }) => (retryHours === undefined ? [] : [`${name} ${retryHours}`]));
    expect(hours.join(", ")).toBe(
      "adyen 720, calendly 24, chargebee 72, clerk 27, coinbase-commerce 72, facebook 36, gumroad 3, linear 7, openai 72, paddle 72, paystack 72, razorpay 24, resend 27, sendgrid 24, shopify 4, square 24, stripe 72, whatsapp 168",
    );
  });

  test("has a unique name, in alphabetical order", () => {
    const names = SENDERS.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)].sort());
    expect(names.length).toBeGreaterThanOrEqual(40);
  });

  test.each(SENDERS.map((sender) => [sender.name, sender] as const))("%s", (name, sender) => {
    expect(checkDefinition(startDefinition(sender))).toMatchObject({ definition: { name }, warnings: [] });
    expect(checkCatalogFile(parseFileText({ text: writeJson(startCatalog(sender)) }))).toMatchObject({ ok: true });
    // A relay that was created from the preset is recognized, even with other actions.
    expect(recogniseSender(triggerOf(name))?.name).toBe(name);
    // Each text is a sentence, and each expected type has a description.
    const sentences = [sender.summary, sender.secret.where, sender.register, ...sender.pitfalls, ...sender.eventTypes.map(({ meaning }) => meaning)];
    expect(sentences.filter((sentence) => !/^\p{Lu}.*[.):]$/su.test(sentence) && !/^`/.test(sentence))).toEqual([]);
    const types = sender.eventTypes.map(({ type }) => type);
    for (const type of [sender.when.event_type ?? []].flat()) expect(types).toContain(type);
    expect(sender.docs).toMatch(/^https:\/\//);
  });
});

test("import-missed --from names the senders with an export", () => {
  expect(SENDERS.filter((sender) => sender.export !== undefined).map(({ name }) => name)).toEqual([...EXPORTERS]);
});

describe("a recipe that several senders share", () => {
  const hooks = (map: Record<string, string>, types: string[] = []): ReceiverTrigger =>
    ({ kind: "receiver", verify: { scheme: "hooks" }, map, when: types.length === 0 ? {} : { event_type: types } }) as ReceiverTrigger;

  test.each([
    ["paths that any sender could have name none of them", hooks({ event_id: "id", event_type: "type" }, ["paid"]), null],
    ["one event type that another sender could have names none of them", hooks({ event_type: "type" }, ["order.paid"]), null],
    ["an own event type with an own path names its sender", hooks({ event_type: "type", user: "data.id" }, ["user.created"]), "clerk"],
    ["all of the paths of a sender name it", hooks({ event_type: "type", time: "timestamp" }), "standard-webhooks"],
  ])("%s", (_rule, trigger, name) => {
    expect(recogniseSender(trigger)?.name ?? null).toBe(name);
  });
});

describe("every file of senders/", () => {
  const folder = join(import.meta.dir, "..", "..", "senders");
  const files = readdirSync(folder).sort();

  test("is in the registry", () => {
    expect(SENDERS.map(({ name }) => `${name}.json`)).toEqual(files);
  });

  test.each(files)("%s has only the fields of a sender, and all of them", (file) => {
    const [, errors] = Errors(senderShape, JSON.parse(readFileSync(join(folder, file), "utf8")));
    expect(errors.map(({ instancePath, message }) => `${file}${instancePath}: ${message}`)).toEqual([]);
  });
});

describe("a sample event", () => {
  const sampleOf = async (trigger: ReceiverTrigger, person: string | null = null) =>
    JSON.parse(Buffer.from((await makeSampleEvent(trigger, person)).body).toString());

  test("is the sender's example with a new event id and payment id, so that it can be sent twice", async () => {
    const [one, other] = await Promise.all([1, 2].map(() => sampleOf(triggerOf("paddle"))));
    const example = JSON.parse(JSON.stringify(paddleExample()));
    const data = { ...one.data, id: example.data.id };
    expect({ ...one, data, event_id: "" }).toEqual({ ...example, event_id: "" });
    expect(one.event_id).not.toBe(other.event_id);
    expect(one.data.id).not.toBe(other.data.id);
  });

  test("has the person who is asked for, and keeps a number as a number", async () => {
    const stripe = triggerOf("stripe");
    const about = { ...stripe, map: { ...stripe.map, person_email: "data.object.customer_details.email" } };
    expect(JSON.stringify(await sampleOf(about, "grace@example.com"))).toContain('"email":"grace@example.com"');
    const update = await sampleOf(triggerOf("telegram"));
    expect(Number.isInteger(update.update_id)).toBe(true);
  });

  test("is made from the definition if that reads fields that the example lacks", async () => {
    const stripe = triggerOf("stripe");
    const other = { ...stripe, map: { ...stripe.map, coupon: "data.object.discounts.0.coupon" } };
    expect((await sampleOf(other)).data.object.discounts).toBeDefined();
  });
});

describe("the recorded requests of real providers verify by the sender's recipe", () => {
  const names: Record<string, string> = { standardwebhooks: "standard-webhooks" };
  test.each(PROVIDERS.filter(({ provider }) => findSender(names[provider] ?? provider) !== null).map((one) => [one.provider, one] as const))(
    "%s",
    (provider, { secret, url, cases }) => {
      const verifier = bindScheme(triggerOf(names[provider] ?? provider).verify)?.prepare(secret);
      for (const one of cases) {
        const call = makeCall({ ...draftOf(one), receiverUrl: url, nowMs: PROVIDERS_NOW_MS });
        const isGood = one.expect.some(({ status }) => status === 200);
        if (isGood) expect(verifier === undefined ? "" : outcome(verifier.verify(call))).toBe("verified");
      }
    },
  );
});

/** Fields that the shortened recordings lack although the sender always sends them, and metadata that the shop sets. */
const CUT: Readonly<Record<string, readonly string[]>> = { shopify: ["number"], stripe: ["product"] };

describe("the preset's map names only fields that the recorded event contains", () => {
  test.each(["stripe", "paddle", "shopify", "standard-webhooks"])("%s", (name) => {
    const { map, when } = senderOf(name);
    const recorded = PROVIDERS.find(({ provider }) => provider === name.replace("-", ""))?.cases.find(({ id }) => id === "good");
    if (recorded === undefined) throw new Error(`nothing is recorded of ${name}`);
    const body = parseJson(Buffer.from(draftOf(recorded).body).toString());
    const read = (path: string) => scalarText(readPath(body, parsePath(path) as Path));
    expect(Object.keys(map).filter((field) => read(map[field] ?? "") === null)).toEqual([...(CUT[name] ?? [])]);
    const sent = Object.entries(when).filter(([field]) => !CUT[name]?.includes(field));
    for (const [field, wanted] of sent) expect([wanted].flat()).toContain(read(map[field] ?? "") ?? "");
  });
});

/** Examples from each vendor's page on its signatures. */
const VECTORS = [
  {
    sender: "github",
    source: "docs.github.com, Validating webhook deliveries",
    secret: "It's a Secret to Everybody",
    body: "Hello, World!",
    headers: { "X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17" },
    atSeconds: 0,
    url: "",
  },
  {
    sender: "standard-webhooks",
    source: "docs.svix.com, How to verify manually",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    body: '{"test": 2432232314}',
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    atSeconds: 1_614_265_330,
    url: "",
  },
  {
    sender: "slack",
    source: "docs.slack.dev, Verifying requests from Slack",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      "X-Slack-Request-Timestamp": "1531420618",
      "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    atSeconds: 1_531_420_618,
    url: "",
  },
  {
    sender: "twilio",
    source: "twilio.com, Security: validating signatures",
    secret: "12345",
    body: "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212",
    headers: { "content-type": "application/x-www-form-urlencoded", "X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=" },
    atSeconds: 0,
    url: "https://mycompany.com/myapp.php?foo=1&bar=2",
  },
];

test.each(VECTORS.map((one) => [`${one.sender}: ${one.source}`, one] as const))("a vector of the documentation verifies: %s", (_name, one) => {
  const verifier = bindScheme(triggerOf(one.sender).verify)?.prepare(one.secret);
  const call = { headers: one.headers, body: one.body, receiverUrl: one.url, nowMs: one.atSeconds * 1000 };
  const verdict = (change: object) => (verifier === undefined ? "" : outcome(verifier.verify(makeCall({ ...call, ...change }))));
  expect([verdict({}), verdict({ body: `${one.body}1` })]).toEqual(["verified", "bad_signature"]);
});

describe("relay presets and relay init --from", () => {
  const within = async (work: (cwd: string) => Promise<void>): Promise<void> => {
    const cwd = mkdtempSync(join(tmpdir(), "relay-sender-"));
    try {
      await work(cwd);
    } finally {
      rmSync(cwd, { recursive: true });
    }
  };

  test("list the presets that a word finds, show one in full, and suggest the nearest name", async () => {
    const cwd = tmpdir();
    const all = JSON.parse((await runCommand(["presets", "--json"], { cwd })).said);
    expect(all.items).toHaveLength(SENDERS.length);
    const found = await runCommand(["presets", "merge requests"], { cwd });
    expect(found.said).toContain("GitLab");
    expect(found.said).not.toContain("Stripe");
    const { said, told } = await runCommand(["presets", "Stripe"], { cwd });
    for (const part of ["Workbench", '"signedPayload": "{timestamp}.{body}"', "checkout.session.completed", "docs.stripe.com"])
      expect(said).toContain(part);
    expect(told).toContain("relay init --from stripe");
    expect(JSON.parse((await runCommand(["presets", "stripe", "--json"], { cwd })).said)).toMatchObject({ name: "stripe", signsEvent: true });
    const unknown = await runCommand(["presets", "strpie"], { cwd });
    expect([unknown.code, unknown.told.split("\n")[0]]).toEqual([1, 'There is no known sender "strpie": did you mean stripe?']);
  });

  test("write a relay and its collection into an existing project, once, and print where things are", () =>
    within(async (cwd) => {
      const first = await runCommand(["init", "--from", "github"], { cwd });
      expect(first.said.split("\n").slice(0, 2)).toEqual(["service/relays/github.json", "service/catalog.json"]);
      expect(first.told).toContain("Webhooks › Add webhook");
      const written = JSON.parse(readFileSync(join(cwd, "service/relays/github.json"), "utf8"));
      expect(written).toEqual(startDefinition(senderOf("github")));
      expect((await runCommand(["init", "--from", "github"], { cwd })).told).toContain("give the new relay another name with --name");
      expect((await runCommand(["init", "--from", "mailgun", "--name", "bounces"], { cwd })).code).toBe(0);
      const { collections } = JSON.parse(readFileSync(join(cwd, "service/catalog.json"), "utf8"));
      expect(Object.keys(collections)).toEqual(["github_events", "mailgun_events"]);
      expect(await runCommand(["validate"], { cwd })).toMatchObject({ code: 0, told: "3 files checked, no problems, no warnings." });
    }));

  test("write nothing if the catalog cannot be read, the sender is unknown, or the name is invalid", () =>
    within(async (cwd) => {
      expect((await runCommand(["init", "--from", "githb"], { cwd })).told).toContain("did you mean github?");
      expect((await runCommand(["init", "--from", "github", "--name", "Git Hub"], { cwd })).code).toBe(2);
      expect((await runCommand(["init", "--name", "orders"], { cwd })).told).toContain("--name needs --from");
      await runCommand(["init"], { cwd });
      writeFileSync(join(cwd, "service/catalog.json"), "{ broken");
      const refused = await runCommand(["init", "--from", "github"], { cwd });
      expect([refused.code, refused.told]).toEqual([1, expect.stringContaining("nothing was written")]);
      expect(() => readFileSync(join(cwd, "service/relays/github.json"))).toThrow();
    }));
});

function paddleExample(): object {
  const { example } = senderOf("paddle");
  return "json" in example ? example.json : example.form;
}

describe("who makes the secret of a receiver", () => {
  const hooks = (map: Record<string, string>, when?: Record<string, string>) => ({
    kind: "receiver",
    verify: { scheme: "hooks" },
    map,
    ...(when && { when }),
  });
  test.each([
    ["the sender with its own recipe", triggerOf("stripe"), "Stripe", "sender"],
    ["the sender whose paths the relay maps, among senders with one recipe", triggerOf("clerk"), "Clerk", "sender"],
    ["Relay, where the sender takes a secret", triggerOf("github"), "GitHub", "relay"],
    ["unknown, where senders with the same recipe differ", hooks({ event_id: "id", event_type: "type" }), undefined, undefined],
  ])("%s", (_rule, trigger, title, from) => {
    const source = findSecretSource(trigger as ReceiverTrigger);
    expect([source?.title, source?.secret.from]).toEqual([title, from]);
  });
});
