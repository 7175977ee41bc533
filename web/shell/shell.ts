/** Frame of every page: the environment, the navigation and the page of the address. It does not know what a page shows. */
import { useEffect, useErrorBoundary, useLayoutEffect, useState } from "preact/hooks";
import { mayIn, type Session, signOut } from "../account/session.ts";
import { HoldBanner } from "../alert/hold.ts";
import { sentenceOf } from "../base/api.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import { follow } from "../base/live.ts";
import type { PageProps } from "../base/page.ts";
import { needCount } from "../base/page-title.ts";
import { apiPath, pagePath, readPlace, rememberPlace } from "../base/place.ts";
import { navigate, useRoute } from "../base/route.ts";
import { findMovedPath } from "../base/section-path.ts";
import { timeZone } from "../base/time-words.ts";
import { DOCS, DocsLink } from "../component/docs-link.ts";
import { Icon } from "../component/icon.ts";
import { helpShown } from "../component/keyboard.ts";
import { EmptyState, ErrorState, Skeleton } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { notifyFailed } from "../component/toast.ts";
import { EnvironmentSwitch } from "./environment-switch.ts";
import { HelpDialog } from "./help-dialog.ts";
import { Navigation } from "./navigation.ts";
import { type FoundPage, findPage } from "./navigation-pages.ts";
import { Palette } from "./palette.ts";
import { firstPlace } from "./start.ts";
import { ThemeSwitch } from "./theme-switch.ts";
import { TopBar } from "./top-bar.ts";
import { usePlaces } from "./use-places.ts";

export function Shell({ session, isLocked }: { session: Session; isLocked: boolean }): View {
  const route = useRoute();
  const [isMenuOpen, setMenuOpen] = useState(false);
  const at = readPlace(route.path);
  const { places, error } = usePlaces();
  const isStart = route.path === "/";
  const place = at?.place ?? firstPlace(session, places);
  const known = session.apps.some(
    ({ id, environments }) => id === place?.app && environments.includes(place.environment),
  );
  const found = at === null || !known ? null : findPage(at.rest);
  const [first = "", ...below] = at?.rest ?? [];
  const moved = findMovedPath(first);
  useLayoutEffect(() => setMenuOpen(false), [route.path]);
  useLayoutEffect(() => {
    if (at !== null && moved !== null)
      navigate(pagePath(at.place, moved, ...below) + location.search, { replace: true });
  }, [route.path]);
  useEffect(() => {
    if (place === null) return;
    // The place is only a guess until the overview has loaded, if the address names none.
    if (known && at !== null) rememberPlace(place);
    // The environment that needs attention is known only now. If the service cannot answer, the dashboard opens anyway.
    const isKnown = places !== undefined || error !== null;
    if ((isStart && isKnown) || at?.rest.length === 0) navigate(pagePath(place, "home"), { replace: true });
  }, [route.path, known, places, error]);
  const followed = place === null || !known || isLocked ? null : apiPath(place);
  useEffect(() => follow(followed), [followed]);
  // Renders every time again when the zone changes.
  useCell(timeZone);
  useEffect(() => needCount.set((places ?? []).reduce((sum, { needs }) => sum + needs, 0)), [places]);
  if (place === null) return null;
  return html`<div class=${["shell", `environment-is-${place.environment}`, ...mayIn(session, place).map((name) => `may-${name}`)].join(" ")} inert=${isLocked}>
    <a class="skip" href="#content" onClick=${skipToContent}>Skip to content</a>
    <aside class=${isMenuOpen ? "side open" : "side"}>
      <div class="side-top">
        <${EnvironmentSwitch} places=${places ?? []} apps=${session.apps} place=${place} canMake=${session.mode === "server" && session.may.includes("manage_server")} />
        <button type="button" class="bare menu-button" aria-expanded=${isMenuOpen} aria-label="Pages" onClick=${() => setMenuOpen(!isMenuOpen)}>
          <${Icon} name="menu" size=${18} /></button>
      </div>
      <div class="side-rest">
        <${Navigation} place=${place} section=${found?.section} />
        <div class="side-foot">
          <div class="side-row"><${ThemeSwitch} />
            <button type="button" class="bare" aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick=${() => helpShown.set(true)}>
            <${Icon} name="help" /></button></div>
          <div class="side-row who"><span title=${session.owner?.email}>${session.owner?.email}</span>
            <button type="button" class="bare" aria-label="Sign out" title="Sign out" onClick=${() => signOut().catch((error) => notifyFailed(sentenceOf(error)))}>
              <${Icon} name="exit" /></button></div>
          <div class="quiet version">Relay ${session.version}<${DocsLink} to=${DOCS.all}>Docs<//></div>
        </div>
      </div>
    </aside>
    <div class="page"><${TopBar} />
    <main id="content" tabindex="-1">${
      found === null
        ? isStart || moved !== null
          ? html`<${Skeleton} rows=${4} />`
          : html`<${Missing} isKnown=${known} home=${pagePath(firstPlace(session) ?? place, "home")} />`
        : html`${found.section.path !== "home" && html`<${HoldBanner} place=${place} />`}
          <${Guarded} key=${route.path} found=${found} place=${place} query=${route.query} />`
    }</main></div>
    <${HelpDialog} />
    <${Palette} session=${session} place=${place} />
  </div>`;
}

/** Renders one page. An exception in it shows an error and leaves the frame intact. */
function Guarded({ found, place, query }: { found: FoundPage } & Pick<PageProps, "place" | "query">): View {
  const [error, forget] = useErrorBoundary();
  if (error !== undefined) {
    return html`<${ErrorState} error="This page has an error: ${sentenceOf(error)}" onRetry=${forget} />`;
  }
  return html`<${found.page} place=${place} params=${found.params} query=${query} />`;
}

function Missing({ isKnown, home }: { isKnown: boolean; home: string }): View {
  return html`<${PageHead} title="Page not found" /><${EmptyState} icon="search" title=${isKnown ? "No such page" : "No such app or environment"}>
    <p>
      ${isKnown ? "The link is old, or the item was deleted." : "This server has no such app or environment, or you have no role in it. Ask an owner for a role in Settings › Members."}
      </p>
    <a class="button" href=${home}>Open Home</a>
  <//>`;
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}
