/** Definitions and senders that many tests share: a receiver with a plain HMAC recipe, and requests that it verifies. */
import { createHmac } from "node:crypto";
import type { Store } from "../../src/store/port.ts";
import type { RunningService } from "./running-service.ts";

export const HOOK_SECRET = "Qk7bXFQsq4OKAPhAIVqsHMpkNhzCwRnS";

export interface ActionLike {
  type: string;
  [field: string]: unknown;
}

interface Stored {
  trigger: Record<string, unknown>;
  actions: Record<string, unknown>[];
}

export const writeOrder: ActionLike = {
  type: "write_record",
  collection: "orders",
  data: { order: "{{mapped.event_id}}", amount: "{{mapped.amount}}" },
};

/** Returns a receiver, named `orders` by default. Its sender signs the body with HMAC-SHA256 in hex. */
export function receiverDefinition(change: {
  name?: string;
  actions?: readonly ActionLike[];
  map?: Record<string, string>;
  when?: Record<string, string>;
  verify?: Record<string, unknown>;
  customer?: { id: string; space?: string } | undefined;
  trustUnsignedEvents?: boolean;
}): Record<string, unknown> {
  return {
    name: change.name ?? "orders",
    trigger: {
      kind: "receiver",
      verify: change.verify ?? {
        scheme: "signature",
        header: "x-signature",
        signedPayload: "{body}",
        encoding: "hex",
      },
      map: change.map ?? { event_id: "id", event_type: "type", amount: "amount" },
      ...(change.when === undefined ? {} : { when: change.when }),
      ...(change.customer === undefined ? {} : { customer: change.customer }),
      ...(change.trustUnsignedEvents === undefined ? {} : { trustUnsignedEvents: change.trustUnsignedEvents }),
    },
    actions: change.actions ?? [writeOrder],
  };
}

/** Returns headers and body of a request that is signed the way `receiverDefinition` verifies. */
export function signedCall(event: unknown, secret = HOOK_SECRET): { headers: Record<string, string>; body: string } {
  const body = typeof event === "string" ? event : JSON.stringify(event);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  return { headers: { "content-type": "application/json", "x-signature": signature }, body };
}

/** Creates the collection that `writeOrder` writes to. */
export async function makeOrders(running: RunningService): Promise<void> {
  const fields = { order: { type: "text" }, amount: { type: "text" } };
  const made = await running.api("POST", "/collections", { name: "orders", kind: "shared", fields });
  if (made.status !== 201) throw new Error(`The collection was refused: ${JSON.stringify(made.body)}`);
}

/** Saves a relay that the API must accept, and returns the response's body. */
export async function saveRelay(
  running: RunningService,
  definition: Record<string, unknown>,
  secret: string | undefined = HOOK_SECRET,
): Promise<{
  receiverSecret?: string;
  signingSecret?: string;
  warnings: string[];
  relay: { version: number };
}> {
  const saved = await running.api("POST", "/relays", {
    definition,
    ...(secret === undefined ? {} : { secret }),
  });
  if (saved.status !== 201) throw new Error(`The relay was refused: ${JSON.stringify(saved.body)}`);
  return saved.body;
}

/** Changes a stored definition in the database itself, to something that no save accepts. */
export async function breakRelay(store: Store, name: string, spoil: (definition: Stored) => void): Promise<void> {
  await store.write("app", async (tx) => {
    const row = await tx.get<{ definition: string }>("SELECT definition FROM relay WHERE name = ?1", name);
    const definition = JSON.parse(row?.definition ?? "");
    spoil(definition);
    await tx.run("UPDATE relay SET definition = ?1 WHERE name = ?2", JSON.stringify(definition), name);
  });
}

/** A recipe whose signatures are accepted once. */
export const TOKEN_RECIPE = {
  scheme: "signature",
  signatureField: "signature",
  timestampField: "timestamp",
  tokenField: "token",
  signedPayload: "{timestamp}{token}",
  encoding: "hex",
};

/** Returns a request that is signed by TOKEN_RECIPE. */
export function tokenCall(token: string, more: object, atSeconds = 1_768_478_400): { headers: Record<string, string>; body: string } {
  const signature = createHmac("sha256", HOOK_SECRET).update(`${atSeconds}${token}`).digest("hex");
  return {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ timestamp: String(atSeconds), token, signature, ...more }),
  };
}
