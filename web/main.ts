/** Entry point of the dashboard. */
import { render } from "preact";
import { session } from "./account/session.ts";
import { html } from "./base/html.ts";
import { startLive } from "./base/live.ts";
import { pagePath, readPlace } from "./base/place.ts";
import { startRouting } from "./base/route.ts";
import { startKeyboard } from "./component/keyboard.ts";
import { Dashboard } from "./shell/dashboard.ts";
import { SECTIONS } from "./shell/navigation-pages.ts";
import { firstPlace } from "./shell/start.ts";
import { applyTheme } from "./shell/theme.ts";

applyTheme();
startRouting();
startLive();
startKeyboard(() => {
  const known = session.get();
  const place = readPlace(location.pathname)?.place ?? (known === undefined ? null : firstPlace(known));
  return new Map(place === null ? [] : SECTIONS.map(({ letter, path }) => [letter, pagePath(place, path)]));
});
render(html`<${Dashboard} />`, document.body);
