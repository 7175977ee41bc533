/** Setting of the automatic backups: how often the server makes one and how many stay. `--backup-every` on the command line decides instead. */
import { useState } from "preact/hooks";
import type { BackupsView } from "../../src/interfaces/api/server.ts";
import { html, type View } from "../base/html.ts";
import { useSend } from "../component/use-send.ts";
import { SettingCard } from "./setting-card.ts";

interface Props {
  backups: BackupsView;
  onChange: (answer: { backups: BackupsView }) => void;
}

const PERIODS: readonly (readonly [hours: number, words: string])[] = [
  [1, "every hour"],
  [6, "every 6 hours"],
  [12, "every 12 hours"],
  [24, "every day"],
  [168, "every week"],
];
const USUAL_KEEP = 7;

export function formatHours(hours: number): string {
  return PERIODS.find(([one]) => one === hours)?.[1] ?? `every ${hours} hours`;
}

export function BackupSchedule({ backups, onChange }: Props): View {
  const { schedule, scheduleGiven } = backups;
  if (!scheduleGiven) return html`<${Form} backups=${backups} onChange=${onChange} />`;
  return html`<${SettingCard} title="Automatic backups"><p class="quiet">The server was started with <code>--backup-every</code> (RELAY_BACKUP_EVERY): it makes a backup ${formatHours(schedule?.everyHours ?? 0)} and keeps the newest ${schedule?.keep}. To set the schedule here, start the server without this option.</p><//>`;
}

function Form({ backups: { schedule }, onChange }: Props): View {
  const { send, isSending, error } = useSend();
  const [hours, setHours] = useState(schedule?.everyHours ?? null);
  const [keep, setKeep] = useState(String(schedule?.keep ?? USUAL_KEEP));
  const isKnown = schedule === null || PERIODS.some(([one]) => one === schedule.everyHours);
  const periods = isKnown
    ? PERIODS
    : [...PERIODS, [schedule.everyHours, formatHours(schedule.everyHours)] as const];
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    const sent = await send<{ backups: BackupsView }>({
      method: "PUT",
      path: "/api/backups/schedule",
      body: { everyHours: hours, keep: Number(keep) },
      changes: ["/api/backups", "/api/overview", "/api/audit"],
      done: hours === null ? "Automatic backups are off now." : "The schedule was saved.",
    });
    if (sent !== null) onChange(sent.answer);
  };
  const choose = (event: Event): void => {
    const { value } = event.target as HTMLSelectElement;
    setHours(value === "" ? null : Number(value));
  };
  return html`<${SettingCard} title="Automatic backups" error=${error}>
    <form class="stack" onSubmit=${save}>
      <label class="field setting-narrow"><span>Make a backup</span><select name="every" value=${hours ?? ""} disabled=${isSending} onChange=${choose}>
        <option value="" selected=${hours === null}>never</option>${periods.map(([one, words]) => html`<option key=${one} value=${one} selected=${one === hours}>${words}</option>`)}</select></label>
      <label class="field setting-narrow"><span>Backups to keep</span>
        <input name="keep" type="number" min="1" max="1000" required value=${keep} disabled=${isSending} onInput=${(event: Event) => setKeep((event.target as HTMLInputElement).value)} />
        <small class="quiet">The server removes older automatic backups. It never removes a backup that you requested.</small></label>
      <div class="form-actions"><button disabled=${isSending}>${isSending ? "Saving…" : "Save schedule"}</button></div>
    </form><//>`;
}
