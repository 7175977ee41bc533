/** Bar above every page: the palette, the state of the connection and the time zone. */
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { chooseZone, isAwayFromUtc, timeZone, zoneName } from "../base/time-words.ts";
import { Icon } from "../component/icon.ts";
import { FIND_KEYS, paletteShown } from "../component/keyboard.ts";
import { ServiceMark } from "../component/live-mark.ts";

export function TopBar(): View {
  return html`<header class="top">
    <button type="button" class="find" aria-keyshortcuts="Control+K Meta+K" onClick=${() => paletteShown.set(true)}>
      <${Icon} name="search" size=${15} /><span>Find anything</span><kbd aria-hidden="true">${FIND_KEYS.join(" ")}</kbd></button>
    <div class="top-rest"><span role="status"><${ServiceMark} /></span><${ZoneSwitch} /></div>
  </header>`;
}

/** Switch of the time zone, hidden if this machine uses UTC. */
function ZoneSwitch(): View {
  const zone = useCell(timeZone);
  if (!isAwayFromUtc())
    return html`<span class="zone" title="Times are in UTC, like on this machine.">UTC</span>`;
  const other = zone === "utc" ? "local" : "utc";
  return html`<button type="button" class="zone" aria-label="${zoneName()}: show times in ${zoneName(other)}" title="Times are in ${zoneName()}. Click for ${zoneName(other)}." onClick=${() => chooseZone(other)}>
    ${zoneName()}</button>`;
}
