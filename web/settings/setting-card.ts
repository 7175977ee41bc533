/** One setting: what it is, how it stands, what changes it, and why a change was refused. */
import { useState } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";

export function SettingCard({
  title,
  error = null,
  children,
}: {
  title: string;
  error?: string | null;
  children?: View;
}): View {
  return html`<section class="card setting" aria-label=${title}><h2>${title}</h2>${children}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}</section>`;
}

/** A switch, which rests while what was asked for is on its way and then stands as the service answered. */
export function SettingSwitch({
  label,
  isOn,
  onSet,
}: {
  label: View;
  isOn: boolean;
  /** Ends when the service has answered. */
  onSet: (isOn: boolean) => Promise<unknown>;
}): View {
  // What is being set; null: nothing.
  const [wanted, setWanted] = useState<boolean | null>(null);
  const set = async (event: Event): Promise<void> => {
    const { checked } = event.target as HTMLInputElement;
    setWanted(checked);
    await onSet(checked);
    setWanted(null);
  };
  return html`<label class="switch"><input type="checkbox" checked=${wanted ?? isOn} disabled=${wanted !== null} onChange=${set} /><span>${label}</span></label>`;
}
