/** Who may sign in to the app that the app keys belong to: anyone with an address, or invited people only. */

import { useState } from "preact/hooks";
import type { SettingsView } from "../../src/setting/setting.ts";
import { call, sentenceOf } from "../ground/api.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { tellDone } from "../part/toast.ts";

export function SigninSetting({ place }: { place: Place }): View {
  const path = apiPath(place, "settings");
  const { data, reload, put } = useLoad<{ settings: SettingsView }>(path);
  const [error, setError] = useState<string | null>(null);
  // What is being set; null: nothing.
  const [wanted, setWanted] = useState<boolean | null>(null);
  if (data === undefined) return null;
  const { version, signin } = data.settings;
  const set = async (invitedOnly: boolean): Promise<void> => {
    setWanted(invitedOnly);
    setError(null);
    try {
      put(await call<{ settings: SettingsView }>("PUT", path, { version, signin: { invitedOnly } }));
      tellDone(invitedOnly ? "Only invited people sign in now." : "Anyone may sign up now.");
    } catch (thrown) {
      setError(sentenceOf(thrown));
      reload();
    }
    setWanted(null);
  };
  return html`<section class="card signin-setting"><h2>Signing in to your app</h2>
    <div class="radios"><label><input type="checkbox" checked=${wanted ?? signin.invitedOnly} disabled=${wanted !== null}
      onChange=${(event: Event) => void set((event.target as HTMLInputElement).checked)} />Invited people only</label></div>
    <p class="quiet">People whom you invited, or whom an event made, sign in with a code. Anyone else is answered the same, gets no mail and is not signed up.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
  </section>`;
}
