/**
 * Stages failures on a running service, and finds where the service reports each without being asked: the log's warnings, problems, alerts, the
 * response to a save. A failure scores 0 (nothing to find), 1 (something to find by looking), 2 (a report without the cause, or the cause only by
 * looking) or 3 (a report with the cause).
 */
import { createHmac } from "node:crypto";
import { poll } from "./patience.ts";
import { HOOK_SECRET, receiverDefinition, signedCall } from "./relay-definition.ts";
import { type Answer, type Called, readAnswer, type StagedServer } from "./staged-server.ts";

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** A place where the service reports something without being asked. */
type Place = "log" | "problem" | "alert" | "answer";

interface Told {
  where: Place;
  text: string;
}

export interface StagedFailure {
  name: string;
  stage(stand: Stand): Promise<unknown>;
  /** Every place that must report the failure. */
  where: readonly Place[];
  /** The cause, in the words of each of these places. */
  cause: RegExp | ((stand: Stand) => RegExp);
  /** Text that must not appear: words of a secret or of an unverified body. */
  hidden?: string;
  /** The failure concerns the whole server, or needs it stopped, so it gets a separate server. */
  alone?: true;
}

/** Words of an unverified body. The service must never show them. */
export const PRIVATE = "words-that-nobody-verified";

/** A separate app on a server, with the collection `orders` and helpers to stage failures. */
export class Stand {
  readonly server: StagedServer;
  readonly called: Called;
  readonly app: string;
  readonly #keys: { development: string; production: string };
  readonly #answers: string[] = [];
  readonly #from: number;
  /** Time at which the app was created. */
  readonly startMs: number;

  private constructor(server: StagedServer, called: Called, app: string, keys: { development: string; production: string }) {
    Object.assign(called, { status: 200 });
    [this.server, this.called, this.app, this.#keys] = [server, called, app, keys];
    [this.#from, this.startMs] = [server.log.length, server.nowMs];
  }

  static async start(server: StagedServer, called: Called, app: string): Promise<Stand> {
    const stand = new Stand(server, called, app, await server.makeApp(app));
    const fields = { order: { type: "text" }, amount: { type: "text" } };
    const made = await stand.api("POST", "/collections", { name: "orders", kind: "shared", fields });
    if (made.status !== 201) throw new Error(`The collection was refused: ${JSON.stringify(made.body)}`);
    return stand;
  }

  /** Sends a management request to an environment of the app. */
  async api(method: string, path: string, body?: unknown, environment: "development" | "production" = "development"): Promise<Answer> {
    const headers = { authorization: `Bearer ${this.#keys[environment]}` };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return readAnswer(await this.server.fetch(`/api/apps/${this.app}/${environment}${path}`, { method, headers, ...sent }));
  }

  async hook(name: string, { headers, body, search = "" }: { headers: Record<string, string>; body: string; search?: string }): Promise<Answer> {
    return readAnswer(await fetch(`${this.server.url}/hooks/${this.app}/${name}${search}`, { method: "POST", headers, body }));
  }

  /** Makes a change as the owner. The warnings and problems in its response count as reported. */
  async change(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.api(method, path, body);
    const { warnings, problems, relay } = (answer.body ?? {}) as Record<string, unknown>;
    const { definition: _, ...shown } = (relay ?? {}) as Record<string, unknown>;
    this.#answers.push(JSON.stringify({ warnings, problems, relay: shown }));
    return answer;
  }

  /** Saves a receiver from `receiverDefinition`, by default with the hook secret. */
  async relay(change: Parameters<typeof receiverDefinition>[0] = {}, secret: string | null = HOOK_SECRET): Promise<void> {
    await this.save(receiverDefinition(change), secret);
  }

  async save(definition: object, secret: string | null = null): Promise<void> {
    const { status, body } = await this.change("POST", "/relays", { definition, ...(secret === null ? {} : { secret }) });
    if (status !== 201) throw new Error(`The relay was refused: ${JSON.stringify(body)}`);
  }

  async call(event: unknown, secret = HOOK_SECRET, name = "orders"): Promise<Answer> {
    return this.hook(name, signedCall(event, secret));
  }

  /** Sends a request with a signature over `text`, as `t=…,v1=…` if `seconds` is set. */
  async callSigned(text: string, more: { seconds?: number; header?: string; body?: string; search?: string; secret?: string } = {}): Promise<Answer> {
    const { seconds, header = "x-signature", body = '{"id":"a"}', search = "", secret = HOOK_SECRET } = more;
    const hex = createHmac("sha256", secret).update(text).digest("hex");
    const value = seconds === undefined ? hex : `t=${seconds},v1=${hex}`;
    return this.hook("orders", { headers: { "content-type": "application/json", [header]: value }, body, search });
  }

  /** Returns an action that calls the server of the app's owner. */
  get notice(): { type: string; url: string } {
    return { type: "call_url", url: this.called.url };
  }

  get seconds(): number {
    return Math.floor(this.server.nowMs / 1000);
  }

  /** Lets time pass and waits for the work that follows. It stops at every retry, because a called server answers in real time. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.server.nowMs + ms;
    for (;;) {
      const retries = (await this.#rest()).filter((atMs) => atMs <= untilMs);
      const nextMs = Math.max(this.server.nowMs, Math.min(untilMs, ...retries));
      await this.server.move("advance", nextMs - this.server.nowMs);
      if (nextMs === untilMs) break;
    }
    await this.#rest();
  }

  /** Lets hours or days pass, without stopping at retries. */
  leap(ms: number): Promise<void> {
    return this.server.move("leap", ms);
  }

  /** Waits until no event of the app runs or is about to run. Returns the times of the next retries. */
  async #rest(): Promise<number[]> {
    type Item = { id: string; state: string; waits: { for: string; until: string } | null };
    const moves = ({ state, waits }: Item): boolean => state === "running" || waits?.for === "turn";
    const items = await poll<Item[]>(
      async () => (await this.api("GET", "/events?limit=200")).body.items,
      (all) => !all.some(moves),
      5,
    );
    if (!items.some(moves)) return items.flatMap(({ waits }) => (waits?.for === "retry" ? [Date.parse(waits.until)] : []));
    const open = items.filter(({ state }) => state === "queued" || state === "running");
    const lines = [JSON.stringify(open), ...this.server.log.slice(-6)];
    throw new Error(`The service did not come to rest; open, and said last:\n${lines.join("\n")}`);
  }

  async person(email = "ann@example.com"): Promise<string> {
    return (await this.api("POST", "/persons", { email })).body.person.id;
  }

  /** Returns what the service has reported so far without being asked. */
  async told(): Promise<Told[]> {
    const problems = (await this.api("GET", "/problems")).body.items;
    const alerts = (await this.api("GET", "/alerts")).body.items;
    const lines = this.server.log.slice(this.#from).filter((line) => {
      const { level, app = this.app } = JSON.parse(line) as { level: string; app?: string };
      return /warn|error/.test(level) && app === this.app;
    });
    return [
      ...lines.map((text): Told => ({ where: "log", text })),
      ...problems.map((one: unknown): Told => ({ where: "problem", text: JSON.stringify(one) })),
      ...alerts.map((one: unknown): Told => ({ where: "alert", text: JSON.stringify(one) })),
      ...this.#answers.map((text): Told => ({ where: "answer", text })),
    ];
  }

  /** Returns what an operator finds by looking at requests, events and relays. */
  async found(): Promise<string[]> {
    const calls = (await this.api("GET", "/calls")).body.items;
    const events = (await this.api("GET", "/events")).body.items;
    const whole = await Promise.all(events.map(async ({ id }: { id: string }) => (await this.api("GET", `/events/${id}`)).body));
    const relays = (await this.api("GET", "/relays")).body.items;
    return [...calls, ...whole, ...relays].map((one) => JSON.stringify(one));
  }
}

/** Scores how well the service reports a failure, and lists the places that report its cause. */
export async function scoreOf(failure: StagedFailure, stand: Stand): Promise<{ score: number; places: Place[]; told: string }> {
  const cause = typeof failure.cause === "function" ? failure.cause(stand) : failure.cause;
  const plain = (text: string) => text.replaceAll('\\"', '"').replaceAll("\\\\", "\\");
  const placesOf = (told: readonly Told[]) => [...new Set(told.filter(({ text }) => cause.test(plain(text))).map((one) => one.where))];
  const isWhole = (told: readonly Told[]): boolean => failure.where.every((place) => placesOf(told).includes(place));
  // A report that comes a moment later counts too.
  const told = await poll(() => stand.told(), isWhole);
  const places = placesOf(told);
  const text = told.map((one) => `${one.where}  ${plain(one.text)}`).join("\n");
  if (isWhole(told)) return { score: 3, places, told: text };
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

export const TIMED = {
  scheme: "signature",
  header: "x-signature",
  signatureKey: "v1",
  timestampKey: "t",
  signedPayload: "{timestamp}.{body}",
  encoding: "hex",
};
