/** Sign-in and confirmation at the OpenID provider: the addresses to go to, and the sign between tabs that a confirmation succeeded. */
import { call } from "../base/api.ts";

/** Address to return to after a confirmation. The page of the response shows it. */
export const CONFIRMED = "/signin/confirmed";
const CHANNEL = "relay-confirmed";

/** Leads this tab to the provider. The sign-in returns to `returnTo`, or to the address that is open now. */
export async function goToProvider(returnTo = location.pathname + location.search): Promise<void> {
  const { url } = await call<{ url: string }>("POST", "/api/session/oidc/start", { returnTo });
  location.assign(url);
}

/** Returns the address at the provider where the person confirms. */
export async function beginConfirmation(): Promise<string> {
  const { url } = await call<{ url: string }>("POST", "/api/session/confirm/oidc", { returnTo: CONFIRMED });
  return url;
}

/** Tells the other tabs of this browser that the person confirmed. */
export function notifyConfirmed(): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.postMessage(null);
  channel.close();
}

/** Calls `work` when the person confirmed in another tab. Returns a function that stops it. */
export function onConfirmed(work: () => void): () => void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", work);
  return () => channel.close();
}
