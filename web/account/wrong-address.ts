/**
 * Reports a dashboard that is opened at an address where it does not work, for example through a tunnel. It appears
 * before the user types anything.
 */
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import type { Session } from "./session.ts";

/** Returns what to do instead, or null at the right address. `path` is the page to continue on, with the token of a one-time link. */
export function renderWrongAddress({ address, mode, cookies }: Session, path: string): View | null {
  const origin = location.origin;
  if (address !== null && address !== origin) {
    return html`<${Notice} kind="warn">You are at ${origin}, but the dashboard of this server is at ${address} and works only there.<//>
      <p><a href=${address + path}>Continue at ${address}</a></p>`;
  }
  const isHttps = location.protocol === "https:";
  if (address === null && mode === "server" && (isHttps || !cookies)) {
    return html`<${Notice} kind="warn">You are at ${origin}, but this server does not know this address, so you cannot sign in here.<//>
      <p>Start it with <code>--base-url ${isHttps ? origin : "https://…"}</code>, the https address that browsers open. Or${" "}
        ${!cookies && html`without <code>--host</code>, and `}open it on the machine it runs on.</p>`;
  }
  return null;
}
