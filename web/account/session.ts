/** Session of this browser: the owner who is signed in and the apps that the owner can open. Its cookie is hidden from scripts. */
import type { SessionView } from "../../src/interfaces/api/session.ts";
import type { Permission } from "../../src/platform/account/permission.ts";
import { call, isSameAnswer } from "../base/api.ts";
import { makeCell } from "../base/cell.ts";
import { invalidate } from "../base/loaded.ts";
import type { Place } from "../base/place.ts";
import { mayLeave } from "../base/route.ts";
import { dropDrafts, ownDrafts } from "../editor/draft.ts";

export type Session = SessionView;
export type App = Session["apps"][number];

/** Returns the permissions of the person in a place. */
export function mayIn({ apps }: Session, { app, environment }: Place): readonly Permission[] {
  return apps.find(({ id }) => id === app)?.may[environment] ?? [];
}

/** undefined until the first answer arrives. */
export const session = makeCell<Session | undefined>(undefined);

let newest: Promise<Session> | null = null;

/** Loads the session. Throws if the service cannot be reached. A load that a later one overtook returns the answer of the later one. */
export function loadSession(): Promise<Session> {
  const loading: Promise<Session> = call<Session>("GET", "/api/session").then((found) =>
    newest === null || newest === loading ? storeSession(found) : newest,
  );
  newest = loading;
  return loading;
}

function storeSession(found: Session): Session {
  const last = session.get();
  if (last !== undefined && isSameAnswer(last, found)) return last;
  if (found.owner !== null) ownDrafts(found.owner.email);
  session.set(found);
  return found;
}

/** Reloads the session after any kind of sign-in, then reloads what failed without one. */
export async function enterSession(): Promise<void> {
  await loadSession();
  invalidate("/api");
}

/** Reloads the page's data if the owner signed in elsewhere, for example in another tab. */
export async function resumeSession(): Promise<void> {
  if ((await loadSession()).owner !== null) invalidate("/api");
}

/** Signs out and reloads the page, so that nothing remains of what it showed. Asks first if a value is not copied. */
export async function signOut(): Promise<void> {
  if (!mayLeave()) return;
  const next = session.get()?.ofProvider ? await endAtProvider() : null;
  if (next === null) await call("DELETE", "/api/session");
  dropDrafts();
  location.assign(next ?? "/");
}

/** Ends a session that began at the OpenID provider. Returns the address that ends it there too, or the sign-in page. */
async function endAtProvider(): Promise<string> {
  return (await call<{ url: string | null }>("POST", "/api/session/oidc/end")).url ?? "/";
}
