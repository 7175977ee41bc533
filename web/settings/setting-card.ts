/** Card of one setting: its state, its control and the error of a rejected change. */
import { useState } from "preact/hooks";
import type { Permission } from "../../src/platform/account/permission.ts";
import { html, type View } from "../base/html.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";

export function SettingCard({
  title,
  needs,
  error = null,
  children,
}: {
  title: string;
  /** The permission of a member for whom the card shows. Absent: everyone. */
  needs?: Permission;
  error?: string | null;
  children?: View;
}): View {
  return html`<section class="card setting" data-needs=${needs} aria-label=${title}><h2>${title}</h2>${children}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}</section>`;
}

/** Switch that is disabled during a change, then shows the service's answer. A member who may not change settings sees its state in words. */
export function SettingSwitch({
  label,
  isOn,
  onSet,
}: {
  label: View;
  isOn: boolean;
  /** Resolves when the service has answered. */
  onSet: (isOn: boolean) => Promise<unknown>;
}): View {
  // Value that is being set, or null.
  const [wanted, setWanted] = useState<boolean | null>(null);
  const set = async (event: Event): Promise<void> => {
    const { checked } = event.target as HTMLInputElement;
    setWanted(checked);
    await onSet(checked);
    setWanted(null);
  };
  return html`<label class="switch"><input data-needs="edit_settings" type="checkbox" checked=${wanted ?? isOn} disabled=${wanted !== null} onChange=${set} /><span data-state=${isOn ? ": on" : ": off"}>${label}</span></label>`;
}
