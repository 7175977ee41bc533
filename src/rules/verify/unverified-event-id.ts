/** Reads the sender's own event id of a request that did not verify, from the header that the scheme takes it from. It proves nothing. */
import type { ReceivedRequest, VerifyFields } from "./contract.ts";
import { findFamily } from "./hooks.ts";
import { findNamedSender } from "./named-sender.ts";

/** Returns null for a scheme without such a header, and where the header is absent. */
export function readUnverifiedEventId({ scheme }: VerifyFields, received: ReceivedRequest): string | null {
  if (scheme === "hooks") return findFamily(received)?.id ?? null;
  const header = findNamedSender(scheme)?.id;
  return header === undefined ? null : received.header(header);
}
