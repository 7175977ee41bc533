/** Relays as the API shows them. A secret is shown by its kind, fingerprint and date alone; its value stands in no view. */
import type { Environment } from "../account/environment.ts";
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { makeNameKey, makePage, type Page, type PageRequest } from "../ground/page.ts";
import type { Reader } from "../store/port.ts";
import type { TriggerKind } from "../trigger/contract.ts";
import { describeTrigger } from "../trigger/registry.ts";
import { standingProblemsOf } from "../watch/problem.ts";
import type { Definition } from "./definition.ts";
import { countLastDay, findLastEventAt, type RelayCounts } from "./relay-count.ts";
import { listRelayProblems } from "./relay-problem.ts";
import {
  type OriginKind,
  overlaps,
  pageRelayRows,
  type RelayRow,
  receiverUrl,
  relayTarget,
  type SecretKind,
} from "./relay-row.ts";

/** A relay in the list. Times are ISO 8601. */
export interface RelayItem {
  id: string;
  name: string;
  state: "active" | "paused";
  trigger: TriggerKind;
  /** "every Monday at 09:00 UTC", "when order.paid arrives". */
  triggerInWords: string;
  /** How many. */
  actions: number;
  version: number;
  /** `file`: `at` is when it was synced; `dashboard`: when it was edited there. */
  origin: { kind: OriginKind; at: string };
  /** Receivers alone. */
  receiverUrl?: string;
  lastEventAt: string | null;
  last24h: RelayCounts;
}

/** A relay on its own. */
export interface RelayView extends RelayItem {
  definition: Definition;
  createdAt: string;
  updatedAt: string;
  /** `previousUntil`: until then the secret before the last rotation verifies too. */
  secret: { kind: SecretKind; fingerprint?: string; setAt: string | null; previousUntil?: string };
  /** Only a relay with a call_url has one. */
  signingSecret?: { setAt: string };
  problems: { code: string; message: string }[];
}

interface ViewContext {
  environment: Environment;
  baseUrl: string;
  nowMs: number;
}

/** A page of the environment's relays, newest first. */
export async function listRelays(
  tx: Reader,
  context: ViewContext,
  request: PageRequest,
): Promise<Page<RelayItem>> {
  const rows = await pageRelayRows(tx, context.environment.id, request);
  const { items: shown, next } = makePage(rows, request, makeNameKey, (row) => row);
  return { items: await showRows(tx, context, shown), next };
}

/** One relay in full. */
export async function showRelay(tx: Reader, context: ViewContext, row: RelayRow): Promise<RelayView> {
  const [item] = await showRows(tx, context, [row]);
  if (item === undefined) throw new Error("A relay row gave no item.");
  const signing = row.signingSecretSetAt;
  return {
    ...item,
    definition: row.definition,
    createdAt: toIso(row.createdAt),
    updatedAt: toIso(row.updatedAt),
    secret: showSecret(context, row),
    ...(signing === null ? {} : { signingSecret: { setAt: toIso(signing) } }),
    problems: await showProblems(tx, row),
  };
}

async function showRows(
  tx: Reader,
  { environment, baseUrl, nowMs }: ViewContext,
  rows: readonly RelayRow[],
): Promise<RelayItem[]> {
  const names = rows.map((row) => row.name);
  const counts = await countLastDay(tx, environment.id, names, nowMs);
  const items: RelayItem[] = [];
  for (const row of rows) {
    const { trigger, actions } = row.definition;
    const isReceiver = trigger.kind === "receiver";
    items.push({
      id: row.id,
      name: row.name,
      state: row.state,
      trigger: trigger.kind,
      triggerInWords: describeTrigger(trigger),
      actions: actions.length,
      version: row.version,
      origin: { kind: row.originKind, at: toIso(row.originAt) },
      ...(isReceiver ? { receiverUrl: receiverUrl(baseUrl, environment.appId, row.name) } : {}),
      lastEventAt: toIsoOrNull(await findLastEventAt(tx, environment.id, row.name)),
      last24h: counts.get(row.name) ?? { done: 0, failed: 0, dead: 0, waiting: 0 },
    });
  }
  return items;
}

/** A processor relay shows the environment's own secret. */
function showSecret({ environment, nowMs }: ViewContext, row: RelayRow): RelayView["secret"] {
  const isProcessor = row.secretKind === "processor";
  const fingerprint = isProcessor ? environment.processorSecretFingerprint : row.secretFingerprint;
  const setAt = isProcessor ? environment.processorSecretSetAt : row.secretSetAt;
  return {
    kind: row.secretKind,
    ...(fingerprint === null ? {} : { fingerprint }),
    setAt: toIsoOrNull(setAt),
    ...(overlaps(row, nowMs) ? { previousUntil: toIso(row.previousSecretUntil) } : {}),
  };
}

/** What stands, and what the row breaks although nothing raised it yet. */
async function showProblems(tx: Reader, row: RelayRow): Promise<RelayView["problems"]> {
  const standing = await standingProblemsOf(tx, row.environmentId, relayTarget(row.name));
  const shown = standing.map(({ code, message }) => ({ code, message }));
  const derived = listRelayProblems(row.definition, row.secretKind, null);
  return [...shown, ...derived.filter(({ code }) => !shown.some((problem) => problem.code === code))];
}
