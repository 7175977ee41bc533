/** Start options of the server, read only. Each has its purpose and how to change it. */
import type { ServerView } from "../../src/interfaces/api/server.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { Notice, NotYet } from "../component/notice.ts";
import { NodeList } from "./node-list.ts";

export function ServerFacts(): View {
  const { data, error, reload } = useLoad<{ server: ServerView }>("/api/server");
  if (data === undefined) return html`<${NotYet} error=${error} onRetry=${reload} />`;
  const { server } = data;
  const isLocal = server.mode === "local";
  const isHttps = server.baseUrl.startsWith("https://");
  return html`<p class="tab-lead">The server reads these at its start. To change one, restart it with the flag or the variable.</p>
    ${!isLocal && !isHttps && html`<${Notice} kind="warn">The address is not https: events and sessions travel in the clear, and most providers refuse to call it.<//>`}
    <div class="card setting"><dl class="setting-facts">
      <${Fact} name="Public address" value=${server.baseUrl} change=${isLocal ? "" : "--base-url or RELAY_BASE_URL"}>
        Receiver URLs begin with it, and the dashboard is opened there. ${!server.baseUrlGiven && "It is made from the address and port that the server listens on."}<//>
      <${Fact} name="Listens on" value=${server.host} change=${isLocal ? "" : "--host or RELAY_HOST"}>
        On <code>127.0.0.1</code> only this machine, and so a proxy on it, reaches the server.<//>
      <${Fact} name="Trusted proxies" value=${server.trustedProxies.join(", ")} change=${isLocal ? "" : "--trusted-proxy or RELAY_TRUSTED_PROXY"}>
        Their <code>X-Forwarded-For</code> says who calls. A proxy that is not named makes all callers one, who share one cap.<//>
      <${Fact} name="Private addresses that may be called" value=${server.allowPrivate.join(", ")} change="--allow-private or RELAY_ALLOW_PRIVATE">
        <code>call_url</code> and the mail server reach only public addresses, and these.<//>
      <${Fact} name="Events at once" value=${String(server.concurrency)} change="--concurrency or RELAY_CONCURRENCY">
        So many events run at the same time, all relays together.<//>
      <${Fact} name="Data directory" value=${server.dataDir} change="--data-dir or RELAY_DATA_DIR">
        ${server.database === null ? "The database and " : "Where no RELAY_MASTER_KEY is given, "}<code>master.key</code>, without which its secrets stay shut: keep a copy of the key, apart from the backups.<//>
      ${
        server.database !== null &&
        html`<${Fact} name="Database" value=${server.database} change="--database or RELAY_DATABASE">
        PostgreSQL, which other nodes may serve too.<//>`
      }
      <${Fact} name="Version" value=${server.version} change="">
        <a href="/changes.txt" target="_blank" rel="noreferrer">What changed in it</a><//>
    </dl></div>
    <${NodeList} />`;
}

function Fact({
  name,
  value,
  change,
  children,
}: {
  name: string;
  value: string;
  /** Flag and variable; empty: it cannot be changed. */
  change: string;
  children?: View;
}): View {
  return html`<div><dt>${name}</dt><dd>
    <span>${value === "" ? html`<span class="quiet">none</span>` : html`<code>${value}</code> <${CopyButton} text=${value} label="Copy: ${name}" words=${null} />`}</span>
    <span class="quiet">${children}${change !== "" && html` Changed by <code>${change}</code>.`}</span></dd></div>`;
}
