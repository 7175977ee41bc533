/** Who is signed in, and what they may open. The session itself is a cookie that no script can read. */
import type { SessionView } from "../../src/interfaces/api/session.ts";
import { call } from "../base/api.ts";
import { makeCell } from "../base/cell.ts";
import { invalidate } from "../base/loaded.ts";
import { dropDrafts, ownDrafts } from "../editor/draft.ts";

export type Session = SessionView;
export type App = Session["apps"][number];

/** undefined: not known yet. */
export const session = makeCell<Session | undefined>(undefined);

let asked = 0;

/** Asks the service who is signed in; throws where it cannot be reached. An answer that a later question overtook is not believed. */
export async function loadSession(): Promise<Session> {
  asked += 1;
  const question = asked;
  const found = await call<Session>("GET", "/api/session");
  if (question !== asked) return found;
  if (found.owner !== null) ownDrafts(found.owner.email);
  session.set(found);
  return found;
}

/** After any way of signing in: reads the session anew and loads again what failed for want of it. */
export async function enterSession(): Promise<void> {
  await loadSession();
  invalidate("/api");
}

/** Goes on where somebody signed in meanwhile, as in another tab. */
export async function resumeSession(): Promise<void> {
  if ((await loadSession()).owner !== null) invalidate("/api");
}

/** Leaves nothing of what was seen in the page: it is loaded anew. */
export async function signOut(): Promise<void> {
  await call("DELETE", "/api/session");
  dropDrafts();
  location.assign("/");
}
