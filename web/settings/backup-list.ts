/** Backups: the last one, a button that makes one, the schedule, the copies elsewhere, and the command that restores one. */
import { useRef } from "preact/hooks";
import type { BackupsView } from "../../src/interfaces/api/server.ts";
import { formatBytes } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { useLoad } from "../base/use-load.ts";
import { CopyButton } from "../component/copy-button.ts";
import { LoadingState, Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Column, Table } from "../component/table.ts";
import { Ago } from "../component/time.ts";
import { timeColumn } from "../component/time-column.ts";
import { useSend } from "../component/use-send.ts";
import { BackupCopy } from "./backup-copy.ts";
import { BackupSchedule, formatHours } from "./backup-schedule.ts";

type BackupFile = BackupsView["files"][number] & { id: string };

const PATH = "/api/backups";
/** Refresh intervals during a backup and otherwise. */
const BUSY_MS = 1_000;
const REST_MS = 60_000;
/** A saved endpoint or schedule can start a copy or a backup shortly after the response. */
const STARTS_WITHIN_MS = 10_000;

const KINDS: readonly (readonly [start: string, words: string])[] = [
  ["scheduled-", "automatic"],
  ["before-restore-", "before a restore"],
  ["before-migration-", "before an update"],
  ["before-move-", "before a move"],
];

const COLUMNS: readonly Column<BackupFile>[] = [
  {
    name: "file",
    title: "File",
    priority: 1,
    cell: ({ name }) => html`<span class="clip mono"><${SafeText} text=${name} limit=${80} /></span>`,
  },
  {
    name: "kind",
    title: "Kind",
    priority: 3,
    size: "name",
    cell: ({ name }) => KINDS.find(([start]) => name.startsWith(start))?.[1] ?? "manual",
  },
  { name: "size", title: "Size", priority: 2, size: "short", cell: ({ bytes }) => formatBytes(bytes) },
  timeColumn("time", "When", 2, ({ at }) => at),
];
/** A column that exists only with an S3 endpoint. */
const COPIED = timeColumn<BackupFile>("copied", "Copied", 3, ({ copiedAt }) => copiedAt);

export function BackupList(): View {
  const changedAt = useRef(Number.NEGATIVE_INFINITY);
  const { data, error, reload, put } = useLoad<{ backups: BackupsView }>(PATH, (loaded) => {
    const isBusy = loaded?.backups.running != null || loaded?.backups.copies.running != null;
    return isBusy || performance.now() - changedAt.current < STARTS_WITHIN_MS ? BUSY_MS : REST_MS;
  });
  const show = (answer: { backups: BackupsView }): void => {
    changedAt.current = performance.now();
    put(answer);
  };
  const { send, isSending, error: refused } = useSend();
  if (data === undefined) return html`<${LoadingState} error=${error} onRetry=${reload} />`;
  const { folder, database, schedule, files, running, failed, copies } = data.backups;
  if (database !== null) return html`<${Elsewhere} database=${database} />`;
  const make = async (): Promise<void> => {
    const sent = await send<{ backups: BackupsView }>({
      method: "POST",
      path: PATH,
      changes: ["/api/overview"],
    });
    if (sent !== null) show(sent.answer);
  };
  const newest = files[0];
  return html`
    <p class="tab-lead">${
      newest === undefined
        ? html`<b>No backup yet.</b> If the disk fails, you lose everything.`
        : html`Last backup: <b><${Ago} at=${newest.at} /></b>.`
    } ${
      schedule === null
        ? "Automatic backups are off."
        : html`The server creates a backup ${formatHours(schedule.everyHours)} and keeps the newest ${schedule.keep} of them.`
    }</p>
    <div class="tab-actions"><button type="button" class="primary" disabled=${isSending || running !== null} onClick=${() => void make()}>
      ${running === null ? "Back up now" : "Backing up…"}</button></div>
    <div role="status">${running !== null && html`<${Notice} kind="info">A backup started <${Ago} at=${running.startedAt} />. The server continues to work. You can leave this page.<//>`}</div>
    ${refused !== null && html`<${Notice} kind="bad"><${Sentence} text=${refused} /><//>`}
    ${failed !== null && html`<${Notice} kind="bad">The backup that was requested <${Ago} at=${failed.startedAt} /> failed: <${Sentence} text=${failed.message} />.<//>`}
    ${
      files.length > 0 &&
      html`<${Table} label="Backups" columns=${copies.target === null ? COLUMNS : [...COLUMNS, COPIED]} items=${files.map((file) => ({ ...file, id: file.name }))} />`
    }
    <div class="settings setting-after"><${BackupSchedule} backups=${data.backups} onChange=${show} /><${BackupCopy} copies=${copies} onChange=${show} /></div>
    <section class="block setting-after" aria-label="Location and restore"><h2>Location and restore</h2>
      <p class="quiet">In <code>${folder}</code> on the disk of the server. ${copies.target === null ? "Copy them to another machine. " : ""}<code>master.key</code> is not in a backup. Store it in another place. To restore a backup, stop the server and run:</p>
      <${Command} text="relay restore ${newest === undefined ? "<file>" : `${folder}/${newest.name}`}" />
      ${
        copies.target !== null &&
        html`<p class="quiet">To restore the newest copy, also on another machine, run this. The command asks for the keys of the bucket and for the passphrase:</p>
          <${Command} text=${restoreCommand(copies)} />`
      }
      <p class="quiet">The restore keeps the earlier files. To back up to another place while the server runs:</p>
      <${Command} text="relay backup /mnt/backup/relay.db" /></section>`;
}

function restoreCommand({ target, last }: BackupsView["copies"]): string {
  if (target === null) return "";
  const { endpoint, bucket, region, prefix } = target;
  const folder = prefix === "" ? "" : `${prefix}/`;
  const place = region === "us-east-1" ? "" : ` --region ${region}`;
  const copy = last === null ? "<copy>" : `${last.name}.enc`;
  return `relay restore s3://${bucket}/${folder}${copy} --endpoint ${endpoint}${place}`;
}

/** Explains backups with PostgreSQL, which has its own tools. */
function Elsewhere({ database }: { database: string }): View {
  return html`
    <p class="tab-lead">The rows are in PostgreSQL, <code><${SafeText} text=${database} limit=${200} /></code>: <b>this server does not back them up.</b></p>
    <section class="block setting-after" aria-label="How to back up"><h2>How to back up</h2>
      <p class="quiet">Use the snapshots of your provider, or run this while the servers run:</p>
      <${Command} text="pg_dump --format=custom --file=relay.dump" />
      <p class="quiet">The master key (<code>RELAY_MASTER_KEY</code> or <code>master.key</code>) is not in a backup. Store it in another place. To restore, stop every server, restore into an empty database with <code>pg_restore</code>, and start the servers with that database.</p></section>`;
}

function Command({ text }: { text: string }): View {
  return html`<div class="copy-row"><code>${text}</code><${CopyButton} text=${text} label="Copy the command" /></div>`;
}
