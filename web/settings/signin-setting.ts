/** Setting that limits who can sign in to the owner's app with its app keys: anyone with an email address, or only invited people. */
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { SettingCard, SettingSwitch } from "./setting-card.ts";
import { useSettings } from "./use-settings.ts";

export function SigninSetting({ place }: { place: Place }): View {
  const { settings, error, change } = useSettings(place);
  if (settings === undefined) return null;
  const set = (invitedOnly: boolean) =>
    change(
      { signin: { invitedOnly } },
      invitedOnly ? "Only invited people can sign in now." : "Anyone can sign up now.",
    );
  return html`<${SettingCard} title="Signing in to your app" error=${error}>
    <${SettingSwitch} label="Invited people only" isOn=${settings.signin.invitedOnly} onSet=${set} />
    <p class="quiet">Only people that you invited or that an event created can sign in with a code. Others see the same page but get no mail.</p>
  <//>`;
}
