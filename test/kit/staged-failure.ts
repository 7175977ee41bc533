/**
 * Failures staged on a running service, and where each is told without being asked: the log's warnings, problems, alerts, the answer of the save
 * itself. Each is scored 0 (nothing to find), 1 (something is there where one looks), 2 (told without its cause, or the cause where one looks)
 * or 3 (told by itself, with the cause).
 */
import { createHmac } from "node:crypto";
import { DEFAULT_LIMITS } from "../../src/ground/limit.ts";
import { FakeCaller, OK } from "./fake-caller.ts";
import { HOOK_SECRET, makeOrders, receiverDefinition, signedCall } from "./relay-definition.ts";
import { type Answer, type RunningService, startRunningService } from "./running-service.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Where something is told to somebody who asked for nothing. */
type Place = "log" | "problem" | "alert" | "answer";

interface Told {
  where: Place;
  text: string;
}

export interface StagedFailure {
  name: string;
  stage(stand: Stand): Promise<unknown>;
  /** Every place that must tell it by itself. */
  where: readonly Place[];
  /** The cause, in the words of each of them. */
  cause: RegExp;
  /** What else may not be told: words of a secret or of an unverified body. */
  hidden?: string;
  /** A service of its own kind. */
  options?: Parameters<typeof startRunningService>[0];
  /** 3 where nothing else is said. */
  score?: number;
}

/** Words of an unverified body; they are never shown. */
export const PRIVATE = "words-that-nobody-verified";

/** A running service with the collection `orders`, a caller that answers as told, and short words for staging. */
export class Stand {
  readonly running: RunningService;
  readonly caller: FakeCaller;
  readonly #answers: string[] = [];

  private constructor(running: RunningService, caller: FakeCaller) {
    this.running = running;
    this.caller = caller;
  }

  static async start(options: StagedFailure["options"] = {}): Promise<Stand> {
    const caller = new FakeCaller(OK);
    const running = await startRunningService({ environments: ["development", "production"], ...options, ports: { caller, ...options.ports } });
    await makeOrders(running);
    return new Stand(running, caller);
  }

  /** A change by the owner's hand; its answer's warnings and problems are told. */
  async change(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.running.api(method, path, body);
    const { warnings, problems, relay } = (answer.body ?? {}) as Record<string, unknown>;
    const { definition: _, ...shown } = (relay ?? {}) as Record<string, unknown>;
    this.#answers.push(JSON.stringify({ warnings, problems, relay: shown }));
    return answer;
  }

  /** Saves a receiver as `receiverDefinition` writes it, with the hook secret. */
  async relay(change: Parameters<typeof receiverDefinition>[0] = {}, secret: string | null = HOOK_SECRET): Promise<void> {
    await this.save(receiverDefinition(change), secret);
  }

  async save(definition: object, secret: string | null = null): Promise<void> {
    const { status, body } = await this.change("POST", "/relays", { definition, ...(secret === null ? {} : { secret }) });
    if (status !== 201) throw new Error(`The relay was refused: ${JSON.stringify(body)}`);
  }

  async call(event: unknown, secret = HOOK_SECRET, name = "orders"): Promise<Answer> {
    return this.running.hook(name, signedCall(event, secret));
  }

  /** Posts it with these headers, over whatever is signed, by `t=…,v1=…`. */
  async callSigned(text: string, more: { seconds?: number; header?: string; body?: string; search?: string; secret?: string } = {}): Promise<Answer> {
    const { seconds, header = "x-signature", body = '{"id":"a"}', search = "", secret = HOOK_SECRET } = more;
    const hex = createHmac("sha256", secret).update(text).digest("hex");
    const value = seconds === undefined ? hex : `t=${seconds},v1=${hex}`;
    return this.running.hook("orders", { headers: { "content-type": "application/json", [header]: value }, body, search });
  }

  get seconds(): number {
    return Math.floor(this.running.clock.now() / 1000);
  }

  /** Lets what follows by itself happen. */
  async pass(ms: number): Promise<void> {
    await this.running.drain().catch(() => undefined);
    await this.running.clock.advance(ms);
    await this.running.drain().catch(() => undefined);
  }

  /** As `pass`, of hours and days. */
  leap(ms: number): Promise<void> {
    return this.running.clock.leap(ms);
  }

  async person(email = "ann@example.com"): Promise<string> {
    return (await this.running.api("POST", "/persons", { email })).body.person.id;
  }

  /** What was told by itself so far. */
  async told(): Promise<Told[]> {
    const log = this.running.logged.filter((line) => /"level":"(warn|error)"/.test(line));
    const problems = (await this.running.api("GET", "/problems")).body.items;
    const alerts = (await this.running.api("GET", "/alerts")).body.items;
    return [
      ...log.map((text): Told => ({ where: "log", text })),
      ...problems.map((one: unknown): Told => ({ where: "problem", text: JSON.stringify(one) })),
      ...alerts.map((one: unknown): Told => ({ where: "alert", text: JSON.stringify(one) })),
      ...this.#answers.map((text): Told => ({ where: "answer", text })),
    ];
  }

  /** What is found where one looks. */
  async found(): Promise<string[]> {
    const calls = (await this.running.api("GET", "/calls")).body.items;
    const events = (await this.running.api("GET", "/events")).body.items;
    const whole = await Promise.all(events.map(async ({ id }: { id: string }) => (await this.running.api("GET", `/events/${id}`)).body));
    const relays = (await this.running.api("GET", "/relays")).body.items;
    return [...calls, ...whole, ...relays].map((one) => JSON.stringify(one));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running[Symbol.asyncDispose]();
  }
}

/** How well it is told, and where it is with its cause. */
export async function scoreOf({ cause, where }: StagedFailure, stand: Stand): Promise<{ score: number; places: Place[]; told: string }> {
  const told = await stand.told();
  const plain = (text: string) => text.replaceAll('\\"', '"').replaceAll("\\\\", "\\");
  const places = [...new Set(told.filter(({ text }) => cause.test(plain(text))).map((one) => one.where))];
  const text = told.map((one) => `${one.where}  ${plain(one.text)}`).join("\n");
  if (where.every((place) => places.includes(place))) return { score: 3, places, told: text };
  const found = await stand.found();
  const shown = `${short(text.split("\n"))}\n-- where one looks:\n${short(found.map(plain))}`;
  if (places.length > 0 || found.some((one) => cause.test(plain(one))) || told.some((one) => one.where !== "answer")) {
    return { score: 2, places, told: shown };
  }
  return { score: found.length > 0 ? 1 : 0, places, told: shown };
}

function short(lines: readonly string[]): string {
  return lines
    .slice(0, 8)
    .map((line) => line.slice(0, 500))
    .join("\n");
}

export const LIMITS = { ...DEFAULT_LIMITS, verifiedEventsPerMinute: 1_000_000, unverifiedCallsPerMinute: 1_000_000 };
export const TIMED = {
  scheme: "signature",
  header: "x-signature",
  signatureKey: "v1",
  timestampKey: "t",
  signedPayload: "{timestamp}.{body}",
  encoding: "hex",
};
export const CALLS = { type: "call_url", url: "https://example.com/notice" };
