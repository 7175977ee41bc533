/** Starts the dashboard in the page. */
import { render } from "preact";
import { session } from "./account/session.ts";
import { html } from "./ground/html.ts";
import { startLive } from "./ground/live.ts";
import { pagePath, readPlace } from "./ground/place.ts";
import { startRouting } from "./ground/route.ts";
import { startKeyboard } from "./part/keyboard.ts";
import { Dashboard } from "./shell/dashboard.ts";
import { ROOMS } from "./shell/room.ts";
import { firstPlace } from "./shell/start.ts";
import { applyTheme } from "./shell/theme.ts";

applyTheme();
startRouting();
startLive();
startKeyboard(() => {
  const known = session.get();
  const place = readPlace(location.pathname)?.place ?? (known === undefined ? null : firstPlace(known));
  return new Map(place === null ? [] : ROOMS.map(({ letter, path }) => [letter, pagePath(place, path)]));
});
render(html`<${Dashboard} />`, document.body);
