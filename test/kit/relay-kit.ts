/**
 * Relays in tests: definitions of each kind, a sealer, and functions that save relays as an owner does. They save into a store, which takes a
 * fraction of a service's start. Tests with a service check what the API adds.
 */

import { recordDue } from "../../src/engine/schedule/schedule.ts";
import type { Actor } from "../../src/platform/account/api-key.ts";
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import { Sealer } from "../../src/platform/secret/seal.ts";
import { requireRelay } from "../../src/rules/relay/relay.ts";
import { createRelay, type NewRelay, type UpdateContext, updateRelay, viewSaved } from "../../src/rules/relay/relay-save.ts";
import { type RelayView, type SavedRelay, showRelay } from "../../src/rules/relay/relay-view.ts";
import { prepareSecret, readSecretSlot, storeSecret } from "../../src/rules/relay/secret-rotation.ts";
import type { FreshStore } from "./fresh-store.ts";

export const BASE_URL = "https://relay.example.com";
export const OWNER: Actor = { kind: "owner", id: "own_1", email: "ada@example.com" };
export const sealer = new Sealer(new Uint8Array(32).fill(7));

export const WRITE = { type: "write_record", collection: "orders", data: { id: "{{mapped.event_id}}" } };
export const CALL = { type: "call_url", url: "https://example.com/notice" };
export const GRANT = { type: "grant_credits", amount: 5 };

/** Schemes in the form that `verify` takes. */
export const HMAC = {
  scheme: "signature",
  header: "x-signature",
  encoding: "hex",
  signedPayload: "{body}",
};
export const HOOKS = { scheme: "hooks" };
export const TOKEN = { scheme: "shared_token" };
export const PROCESSOR = { scheme: "processor" };
export const ED25519 = { ...HMAC, algorithm: "ed25519" };
export const ECDSA = { ...HMAC, algorithm: "ecdsa-p256-sha256" };

export function receiver(name: string, verify: object = HMAC, actions: object[] = [WRITE], trigger: object = {}) {
  return { name, trigger: { kind: "receiver", verify, map: { event_id: "id" }, ...trigger }, actions };
}

export function schedule(name: string, actions: object[] = [CALL], trigger: object = {}) {
  return { name, trigger: { kind: "schedule", every: "1d", at: "09:00", ...trigger }, actions };
}

export interface RelayKit {
  context(name?: EnvironmentName, limit?: number): Promise<UpdateContext>;
  create(definition: unknown, input?: Partial<NewRelay>, name?: EnvironmentName): Promise<SavedRelay>;
  update(name: string, definition: unknown, version: number, synced?: boolean): Promise<SavedRelay>;
  rotate(name: string, value: string | null, environment?: EnvironmentName): Promise<{ receiverSecret?: string }>;
  view(name: string, environment?: EnvironmentName): Promise<RelayView>;
}

export function makeRelayKit({ store, clock, environment }: Pick<FreshStore, "store" | "clock" | "environment">): RelayKit {
  const context: RelayKit["context"] = async (name = "development", limit = 1_000) => ({
    environment: await environment(name),
    actor: OWNER,
    nowMs: clock.now(),
    limits: { relaysPerEnvironment: limit },
    sealer,
    baseUrl: BASE_URL,
    recordDue,
  });
  return {
    context,
    async create(definition, input = {}, name = "development") {
      const here = await context(name);
      const origin = { kind: "dashboard", synced: false } as const;
      const wanted = { secret: null, signingSecret: null, origin, ...input, definition };
      return await store.write("dashboard", async (tx) => viewSaved(tx, here, await createRelay(tx, here, wanted)));
    },
    async update(name, definition, version, synced = false) {
      const here = await context();
      const origin = { kind: synced ? "file" : "dashboard", synced } as const;
      return await store.write("dashboard", async (tx) => viewSaved(tx, here, await updateRelay(tx, here, name, { definition, version, origin })));
    },
    async rotate(name, value, environmentName = "development") {
      const here = await context(environmentName);
      const slot = await store.read((tx) => readSecretSlot(tx, here.environment.id, name));
      const prepared = prepareSecret(slot, value, sealer, clock.now());
      return store.write("dashboard", (tx) => storeSecret(tx, here, prepared));
    },
    async view(name, environmentName = "development") {
      const here = await context(environmentName);
      return store.read(async (tx) => showRelay(tx, here, await requireRelay(tx, here.environment.id, name)));
    },
  };
}
