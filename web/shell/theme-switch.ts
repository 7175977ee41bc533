/** Switch between the system, light and dark themes. */
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { Icon, type IconName } from "../component/icon.ts";
import { chooseTheme, type Theme, theme } from "./theme.ts";

const CHOICES: readonly { value: Theme; icon: IconName; label: string }[] = [
  { value: "system", icon: "screen", label: "System" },
  { value: "light", icon: "sun", label: "Light" },
  { value: "dark", icon: "moon", label: "Dark" },
];

export function ThemeSwitch(): View {
  const now = useCell(theme);
  return html`<div class="theme-switch" role="group" aria-label="Theme">
    ${CHOICES.map(
      ({ value, icon, label }) =>
        html`<button key=${value} type="button" aria-pressed=${now === value} aria-label=${label} title=${label} onClick=${() => chooseTheme(value)}>
          <${Icon} name=${icon} size=${15} /></button>`,
    )}
  </div>`;
}
