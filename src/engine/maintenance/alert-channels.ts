/**
 * Sends alerts to the channels of their environment, each at least once and in order. Channels do not wait for each other. The service's acceptance
 * is written after the call, so a process that dies in between repeats one message. Messages contain no text of an alert, which may quote a payload:
 * they name the relay, the code and what it means.
 */
import { BackgroundJob, type Clock, toIso, toIsoOrNull, waitAtMost } from "../../base/clock.ts";
import { adviseOn, findMeaning, titleOf } from "../../base/code/code.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { cutToLine } from "../../base/text.ts";
import { findApp } from "../../platform/account/app.ts";
import { type Environment, findEnvironmentById } from "../../platform/account/environment.ts";
import { writeAudit } from "../../platform/audit/audit.ts";
import {
  type Channel,
  findKind,
  listDueChannels,
  openSecrets,
  requireChannel,
  SEALED_BY_ANOTHER,
  storeResult,
} from "../../platform/channel/channel.ts";
import {
  type Entry,
  listEntries,
  MAX_RETRY_MS,
  recordDelivered,
  recordResult,
} from "../../platform/channel/channel-delivery.ts";
import type { ChannelKind } from "../../platform/channel/channel-kind.ts";
import {
  type ChannelAlert,
  type ChannelMessage,
  type ChannelResult,
  countFitting,
  hash,
  makeRequest,
  readResult,
} from "../../platform/channel/channel-request.ts";
import type { OutboundCaller } from "../../platform/outbound/caller.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { relayOf } from "../../rules/relay/relay.ts";
import { type FencedStore, type Reader, type Store, StoreUnavailable } from "../../store/port.ts";

const LOOK_EVERY_MS = MINUTE_MS;
/** A turn waits this long for its channels, so that a slow one does not delay the next turn of the others. */
const TURN_WAIT_MS = 5_000;
const STOP_WAIT_MS = 10_000;
const MAX_TARGET_CHARS = 100;
/** The code and the target of a test message. */
const TEST = "test";

interface SendDeps {
  clock: Clock;
  sealer: Sealer;
  caller: OutboundCaller;
  local: boolean;
  /** The dashboard's origin, without a trailing slash. */
  baseUrl: () => string;
}

interface AlertChannelsDeps extends SendDeps {
  store: FencedStore;
  log: Log;
}

/** The place that a message is about. */
interface Place {
  environment: Environment;
  app: string;
  /** The environment's page in the dashboard. */
  url: string;
}

export class AlertChannels extends BackgroundJob {
  readonly #deps: AlertChannelsDeps;
  /** The channels that are sending now, by id. */
  readonly #sending = new Map<string, Promise<void>>();

  constructor(deps: AlertChannelsDeps) {
    super({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      onError: (error) => this.#report(error),
    });
    this.#deps = deps;
  }

  /** Waits for messages that are on their way, but not for a service that does not answer. */
  override async stop(): Promise<void> {
    await waitAtMost(this.#deps.clock, STOP_WAIT_MS, Promise.all([super.stop(), ...this.#sending.values()]));
  }

  protected override async turn(): Promise<undefined> {
    const { store, clock } = this.#deps;
    for (const channel of await store.read((tx) => listDueChannels(tx, clock.now(), MAX_RETRY_MS))) {
      if (this.#sending.has(channel.id)) continue;
      const sending = this.#send(channel)
        .catch((error: unknown) => this.#report(error))
        .finally(() => this.#sending.delete(channel.id));
      this.#sending.set(channel.id, sending);
    }
    await waitAtMost(clock, TURN_WAIT_MS, Promise.all(this.#sending.values()));
  }

  #report(error: unknown): void {
    if (!(error instanceof StoreUnavailable))
      this.#deps.log.error("alerts cannot be sent to a channel", { error });
  }

  /** Sends messages until none is left, the service takes none, or its rate is reached. */
  async #send(channel: Channel): Promise<void> {
    const { store, clock } = this.#deps;
    const kind = findKind(channel);
    if (kind === null) return;
    const nowMs = clock.now();
    const { place, entries } = await store.read(async (tx) => ({
      place: await findPlace(tx, channel.environmentId, this.#deps.baseUrl()),
      entries: await listEntries(tx, channel, nowMs),
    }));
    if (place === null) return;
    let current = channel;
    for (let left = kind.perMinute; entries.length > 0 && left > 0 && this.loop.running; left--) {
      const alerts = entries.map(toAlert);
      const taken = entries.splice(0, countFitting(kind, alerts));
      const message = makeMessage(place, taken, alerts.slice(0, taken.length));
      const result = await post(this.#deps, { channel, kind, message });
      await store.write(
        "app",
        async (tx) => {
          if (result.meaning === "ok") await recordDelivered(tx, channel, taken, clock.now());
          await recordResult(tx, current, result, clock.now());
        },
        channel.environmentId,
      );
      if (result.meaning !== "ok") return;
      current = { ...current, failingAt: null, failures: 0 };
    }
  }
}

/** Sends a test message now and records the result. A kind with one alert in a message gets it as open, then as resolved. Throws `not_found`. */
export async function testChannel(
  deps: SendDeps & { store: Store },
  { environmentId, by }: { environmentId: number; by: string },
  id: string,
): Promise<ChannelResult> {
  const { store, clock } = deps;
  const { channel, place } = await store.read(async (tx) => ({
    channel: await requireChannel(tx, environmentId, id),
    place: await findPlace(tx, environmentId, deps.baseUrl()),
  }));
  const kind = findKind(channel);
  if (kind === null || place === null)
    return {
      meaning: "wrong",
      waitMs: null,
      message: "This version of Relay does not know the kind of the channel.",
    };
  const states = kind.isSingle ? (["open", "resolved"] as const) : (["open"] as const);
  let result: ChannelResult | null = null;
  for (const state of states) {
    const alerts = [makeTestAlert(channel, state, clock.now())];
    const message = {
      ...makeMessage(place, [], alerts),
      isTest: true,
      id: `msg_${hash([id, clock.now()]).slice(0, 32)}`,
    };
    result = await post(deps, { channel, kind, message });
    if (result.meaning !== "ok") break;
  }
  const last = result as ChannelResult;
  await store.write(
    "dashboard",
    async (tx) => {
      const nowMs = clock.now();
      // Only alerts that were not sent are a problem, so a failed test changes nothing but the result that the list shows.
      const now = await requireChannel(tx, environmentId, id);
      if (last.meaning === "ok") await recordResult(tx, now, last, nowMs);
      else await storeResult(tx, { ...now, triedAt: nowMs, result: last.message });
      await writeAudit(tx, {
        environmentId,
        by,
        nowMs,
        action: "alert_channel.tested",
        target: `channel:${id}`,
        after: { result: last.message },
      });
    },
    environmentId,
  );
  return last;
}

async function findPlace(tx: Reader, environmentId: number, baseUrl: string): Promise<Place | null> {
  const environment = await findEnvironmentById(tx, environmentId);
  if (environment === null) return null;
  const app = (await findApp(tx, environment.appId))?.name ?? environment.appId;
  return { environment, app, url: `${baseUrl}/apps/${environment.appId}/${environment.name}` };
}

async function post(
  { clock, sealer, caller, local }: SendDeps,
  { channel, kind, message }: { channel: Channel; kind: ChannelKind; message: ChannelMessage },
): Promise<ChannelResult> {
  const secrets = openSecrets(sealer, channel);
  if (secrets === null) return { meaning: "wrong", waitMs: null, message: SEALED_BY_ANOTHER };
  const request = makeRequest(kind, { ...channel.fields, ...secrets }, message, local);
  const outcome = await caller.call(request);
  return readResult(kind, outcome, { secrets: Object.values(secrets), nowMs: clock.now() });
}

function makeMessage(
  { environment, app, url }: Place,
  entries: readonly Entry[],
  alerts: readonly ChannelAlert[],
): ChannelMessage {
  const targets = new Set(alerts.map(({ target }) => target));
  const [target = ""] = targets;
  const relay = targets.size === 1 ? relayOf(target) : null;
  const parts = entries.map(({ state, alert }) => [state, alert.id, alert.count]);
  return {
    id: `msg_${hash(parts).slice(0, 32)}`,
    app,
    appId: environment.appId,
    environment: environment.name,
    isTest: false,
    link: relay === null ? `${url}/alerts` : `${url}/relays/${encodeURIComponent(relay)}`,
    alerts,
  };
}

function toAlert({ state, alert }: Entry): ChannelAlert {
  const { code, count, at, lastAt, resolvedAt } = alert;
  const target = cutToLine(alert.target, MAX_TARGET_CHARS);
  const name = target.slice(target.indexOf(":") + 1);
  const times = count === 1 ? "" : `, ${count} times`;
  const title = `${name}: ${titleOf(code).toLowerCase()}`;
  const meaning = findMeaning(code);
  const { todo } = adviseOn(code);
  const lines = [`${title} (${code})${times}, last ${toIso(lastAt)}`, meaning?.what ?? "", todo ?? ""];
  return {
    state,
    code,
    target,
    title: `${title}${times}`,
    text:
      state === "resolved" ? `Resolved: ${title} (${code})` : lines.filter((line) => line !== "").join("\n"),
    count,
    at: toIso(at),
    lastAt: toIso(lastAt),
    resolvedAt: state === "resolved" ? toIsoOrNull(resolvedAt) : null,
  };
}

function makeTestAlert({ name }: Channel, state: ChannelAlert["state"], nowMs: number): ChannelAlert {
  const now = toIso(nowMs);
  return {
    state,
    code: TEST,
    target: TEST,
    title: `test of the alert channel ${name}`,
    text: `This is a test of the alert channel ${name}. Alerts will arrive here.`,
    count: 1,
    at: now,
    lastAt: now,
    resolvedAt: state === "resolved" ? now : null,
  };
}
