/** Start options of the server, read only. Each has its purpose and how to change it. */
import type { ServerView } from "../../src/interfaces/api/server.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { Ago } from "../component/time.ts";
import { NodeList } from "./node-list.ts";

export function ServerFacts(): View {
  const { data, error, reload } = useLoad<{ server: ServerView }>("/api/server");
  if (data === undefined) return html`<${LoadingState} error=${error} onRetry=${reload} />`;
  const { server } = data;
  const isLocal = server.mode === "local";
  const isHttps = server.baseUrl.startsWith("https://");
  return html`<p class="tab-lead">The server reads these values when it starts. To change a value, restart the server with the flag or the variable.</p>
    ${!isLocal && !isHttps && html`<${Notice} kind="warn">The address is not https. Events and sessions are not encrypted, and most providers refuse such a URL.<//>`}
    <div class="card setting"><dl class="setting-facts">
      <${Fact} name="Public address" value=${server.baseUrl} change=${isLocal ? "" : "--base-url or RELAY_BASE_URL"}>
        Receiver URLs and the dashboard use this address. ${!server.baseUrlGiven && "Derived from the address and port of the server."}<//>
      <${Fact} name="Listens on" value=${server.host} change=${isLocal ? "" : "--host or RELAY_HOST"}>
        On <code>127.0.0.1</code> only this machine, for example a proxy on it, can reach the server.<//>
      <${Fact} name="Trusted proxies" value=${server.trustedProxies.join(", ")} change=${isLocal ? "" : "--trusted-proxy or RELAY_TRUSTED_PROXY"}>
        Their <code>X-Forwarded-For</code> gives the address of the caller. Behind a proxy that is not listed, all callers share one limit.<//>
      <${Fact} name="Private addresses that may be called" value=${server.allowPrivate.join(", ")} change="--allow-private or RELAY_ALLOW_PRIVATE">
        <code>call_url</code>, the mail server and the collector of telemetry can reach only public addresses and these.<//>
      <${Fact} name="Events at once" value=${String(server.concurrency)} change="--concurrency or RELAY_CONCURRENCY">
        Maximum number of events that run at the same time.<//>
      <${Fact} name="Data directory" value=${server.dataDir} change="--data-dir or RELAY_DATA_DIR">
        ${server.database === null ? "The database and " : "Without RELAY_MASTER_KEY, "}<code>master.key</code>, which decrypts the secrets. Keep a copy of the key, separate from the backups.<//>
      ${
        server.database !== null &&
        html`<${Fact} name="Database" value=${server.database} change="--database or RELAY_DATABASE">
        PostgreSQL, which other nodes can use too.<//>`
      }
      <${Fact} name="Telemetry" value=${server.telemetry?.endpoint ?? ""} change="OTEL_EXPORTER_OTLP_ENDPOINT">
        Traces and metrics for an OpenTelemetry collector. ${server.telemetry !== null && html`<${LastExports} telemetry=${server.telemetry} />`}<//>
      <${Fact} name="Version" value=${server.version} change="">
        <a href="/changes.txt" target="_blank" rel="noreferrer">Release notes</a><//>
    </dl></div>
    <${NodeList} />`;
}

/** The last export of each signal, with its failure. */
function LastExports({ telemetry }: { telemetry: NonNullable<ServerView["telemetry"]> }): View {
  const { traces, metrics } = telemetry;
  return html`<${LastExport} name="Traces" state=${traces} /> <${LastExport} name="Metrics" state=${metrics} />`;
}

function LastExport({
  name,
  state,
}: {
  name: string;
  state: NonNullable<ServerView["telemetry"]>["traces"];
}): View {
  if (state === null) return html`${name}: off.`;
  const { exportedAt, failure } = state;
  return html`${name}: ${exportedAt === null ? "no export succeeded yet." : html`last exported <${Ago} at=${exportedAt} />.`}
    ${failure !== null && html` <strong>The last export failed.</strong> ${failure}`}`;
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
    <span class="quiet">${children}${change !== "" && html` Change it with <code>${change}</code>.`}</span></dd></div>`;
}
