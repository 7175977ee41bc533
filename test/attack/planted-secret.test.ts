/**
 * A secret that verifies in production is planted in development. Whichever way it was set in the first and is set in the second, it is refused with
 * `invalid_input`. Nothing is stored, and a request signed with it makes an event only in the first environment.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { receiverDefinition } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

const SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";
const others = Array.from({ length: 200 }, (_, at) => `aZ8cYGRtr5PLBQiBJWrtINqlOiaD${1_000 + at}`);
const CALL = [{ type: "call_url", url: "https://example.test/" }];
const NAME = "orders";
const SIGNED = { scheme: "signature", header: "x-signature", signedPayload: "{body}", encoding: "hex" };
const TOKEN = { scheme: "shared_token" };
const PROCESSOR = { scheme: "processor" };
const WEEK_SECONDS = 7 * 86_400;

type Place = "development" | "production";
/** One request to the API, as an owner makes it. The first refusal ends a way. */
type Step = (place: Place) => Promise<{ status: number; code: string | null }>;

let running: RunningService;
let made = 0;

beforeAll(async () => {
  const most = 1_000_000;
  const limits = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: most, unverifiedCallsPerMinute: most };
  running = await startRunningService({ config: { limits }, environments: ["development", "production"] });
});

afterAll(async () => {
  await running[Symbol.asyncDispose]();
});

afterEach(async () => {
  for (const place of ["development", "production"] as const) {
    for (const name of [NAME, "elsewhere"]) await running.api("DELETE", `/relays/${name}`, undefined, place);
    await processorSecret(null)(place);
  }
});

const another = (): string => others[made++ % others.length] as string;

async function call(method: string, path: string, body: unknown, place: Place) {
  const answer = await running.api(method, path, body, place);
  return { status: answer.status, code: answer.status < 300 ? null : answer.body.code };
}

const definition = (verify: Record<string, unknown>, name = NAME) => receiverDefinition({ name, actions: CALL, map: { event_id: "id" }, verify });

const create =
  (verify: Record<string, unknown>, secret: string | null, name = NAME): Step =>
  (place) =>
    call("POST", "/relays", { definition: definition(verify, name), ...(secret === null ? {} : { secret }) }, place);

const rotate =
  (value: string | null, overlapSeconds = 0): Step =>
  (place) => {
    const more = overlapSeconds === 0 ? {} : { overlapSeconds };
    return call("PUT", `/relays/${NAME}/secret`, { ...(value === null ? {} : { value }), ...more }, place);
  };

const save =
  (verify: Record<string, unknown>): Step =>
  async (place) => {
    const { body } = await running.api("GET", `/relays/${NAME}`, undefined, place);
    const { version } = body.relay;
    return call("PUT", `/relays/${NAME}`, { definition: definition(verify), version }, place);
  };

const remove: Step = (place) => call("DELETE", `/relays/${NAME}`, undefined, place);

const processorSecret =
  (value: string | null): Step =>
  async (place) => {
    const { body } = await running.api("GET", "/settings", undefined, place);
    return call("PUT", "/settings", { version: body.settings.version, processorSecret: value }, place);
  };

const pause: Step = (place) => call("POST", `/relays/${NAME}/pause`, undefined, place);

/** Ways to make SECRET verify requests to the name. `scheme` says how a request is signed then. */
const WAYS: [words: string, steps: () => Step[], scheme: "signed" | "token" | "processor"][] = [
  ["pasted when the relay is made", () => [create(SIGNED, SECRET)], "signed"],
  ["pasted as a token", () => [create(TOKEN, SECRET)], "token"],
  ["pasted with white space around it", () => [create(SIGNED, ` \n${SECRET}\t `)], "signed"],
  ["rotated in", () => [create(SIGNED, null), rotate(SECRET)], "signed"],
  ["rotated in beside an earlier one", () => [create(SIGNED, another()), rotate(SECRET, 3_600)], "signed"],
  ["rotated out with an overlap", () => [create(SIGNED, SECRET), rotate(another(), WEEK_SECONDS)], "signed"],
  [
    "rotated out, the overlap moved by storing the new one again",
    () => {
      const next = another();
      return [create(SIGNED, SECRET), rotate(next, 3_600), rotate(next, WEEK_SECONDS)];
    },
    "signed",
  ],
  ["kept while the scheme changed", () => [create(TOKEN, SECRET), save(SIGNED)], "signed"],
  ["pasted, and the relay paused", () => [create(SIGNED, SECRET), pause], "signed"],
  ["pasted on a relay made again", () => [create(SIGNED, null), remove, create(SIGNED, SECRET)], "signed"],
  ["set as the processor's for a relay that is there", () => [create(PROCESSOR, null), processorSecret(SECRET)], "processor"],
  ["set as the processor's before the relay is made", () => [processorSecret(SECRET), create(PROCESSOR, null)], "processor"],
  ["set in the place of another processor secret", () => [processorSecret(another()), create(PROCESSOR, null), processorSecret(SECRET)], "processor"],
  ["the processor's, and the scheme changed to it", () => [processorSecret(SECRET), create(SIGNED, null), save(PROCESSOR)], "processor"],
  [
    "the scheme changed to the processor's, and the secret set",
    () => [create(SIGNED, another()), save(PROCESSOR), processorSecret(SECRET)],
    "processor",
  ],
];

async function walk(steps: readonly Step[], place: Place): Promise<{ status: number; code: string | null }> {
  let last = { status: 0, code: null as string | null };
  for (const step of steps) {
    last = await step(place);
    if (last.status >= 300) return last;
  }
  return last;
}

/** Sends a request signed with SECRET. Returns the environments that have its event. */
async function receivers(scheme: "signed" | "token" | "processor"): Promise<string[]> {
  const id = `evt_${++made}`;
  const body = JSON.stringify({ id });
  const seconds = Math.floor(running.clock.now() / 1_000);
  const hmac = (text: string): string => createHmac("sha256", SECRET).update(text).digest("hex");
  const headers: Record<string, string> =
    scheme === "signed"
      ? { "x-signature": hmac(body) }
      : scheme === "token"
        ? { "x-webhook-token": SECRET }
        : { "processor-signature": `t=${seconds},v1=${hmac(`${seconds}.${body}`)}` };
  expect((await running.hook(NAME, { headers, body })).status).toBe(200);
  const rows = await running.rows<{ name: string }>(
    "SELECT environment.name AS name FROM event JOIN environment ON environment.id = environment_id WHERE payload LIKE ?1",
    `%"${id}"%`,
  );
  return rows.map(({ name }) => name);
}

describe.each(WAYS)("a secret that was set in production, %s,", (_words, first, scheme) => {
  test.each(WAYS)("is refused in development when it is %s", async (_other, second) => {
    expect((await walk(first(), "production")).code).toBeNull();
    expect(await walk(second(), "development")).toEqual({ status: 400, code: "invalid_input" });
    expect(await receivers(scheme)).toEqual(["production"]);
  });
});

describe("a secret is accepted if it verifies nothing of the same name elsewhere", () => {
  const rows: [words: string, first: () => Step[], second: () => Step[]][] = [
    ["under another name", () => [create(SIGNED, SECRET, "elsewhere")], () => [create(SIGNED, SECRET)]],
    [
      "as a processor's, while the other's relay has another name",
      () => [create(SIGNED, SECRET, "elsewhere")],
      () => [create(PROCESSOR, null), processorSecret(SECRET)],
    ],
    ["after the other relay is deleted", () => [create(SIGNED, SECRET), remove], () => [create(SIGNED, SECRET)]],
    [
      "after it was rotated out without an overlap",
      () => [create(SIGNED, SECRET), rotate(null)],
      () => [create(PROCESSOR, null), processorSecret(SECRET)],
    ],
    [
      "after the processor's is removed",
      () => [create(PROCESSOR, null), processorSecret(SECRET), processorSecret(null)],
      () => [create(SIGNED, SECRET)],
    ],
    [
      "after the other relay's scheme changed away from the processor's",
      () => [create(PROCESSOR, null), processorSecret(SECRET), save(SIGNED)],
      () => [create(SIGNED, SECRET)],
    ],
  ];
  test.each(rows)("%s", async (_words, first, second) => {
    expect((await walk(first(), "production")).code).toBeNull();
    expect((await walk(second(), "development")).code).toBeNull();
  });

  test("after its overlap has ended", async () => {
    expect((await walk([create(SIGNED, SECRET), rotate(another(), 3_600)], "production")).code).toBeNull();
    expect((await walk([create(PROCESSOR, null), processorSecret(SECRET)], "development")).code).toBe("invalid_input");
    await running.clock.advance(3_600_000);
    expect((await processorSecret(SECRET)("development")).code).toBeNull();
  });
});

test("one of two environments that set a secret at the same moment is refused", async () => {
  await create(PROCESSOR, null)("development");
  await create(SIGNED, null)("production");
  const answers = await Promise.all([processorSecret(SECRET)("development"), rotate(SECRET)("production")]);
  expect(answers.filter(({ code }) => code === "invalid_input")).toHaveLength(1);
});
