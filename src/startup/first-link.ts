/** The one-time link that a start prints: into the local dashboard, or to a server's first set-up. */
import { listOwners } from "../account/owner.ts";
import { createSigninLink } from "../account/signin-link.ts";
import type { ServiceConfig } from "../config.ts";
import { localUrl, setupUrl } from "../http/link.ts";
import type { Store } from "../store/port.ts";

/** null when there is nothing to open: a server that has an owner. */
export async function makeSigninLink(
  store: Store,
  config: ServiceConfig,
  baseUrl: string,
): Promise<string | null> {
  const nowMs = config.clock.now();
  if (config.mode === "local") {
    const { token } = await store.write("app", (tx) =>
      createSigninLink(tx, { kind: "local", ownerId: null, nowMs }),
    );
    return localUrl(baseUrl, token);
  }
  if ((await store.read(listOwners)).length > 0) return null;
  // In one transaction: an owner made on the command line meanwhile must not be followed by a set-up link.
  const made = await store.write("app", async (tx) =>
    (await listOwners(tx)).length > 0
      ? null
      : await createSigninLink(tx, { kind: "setup", ownerId: null, nowMs }),
  );
  return made === null ? null : setupUrl(baseUrl, made.token);
}
