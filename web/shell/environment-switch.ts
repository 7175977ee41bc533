/** Current app and environment, always visible, and a menu with the others. Production looks different from all others. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EnvironmentSummary } from "../../src/insight/overview/environment-list.ts";
import type { App } from "../account/session.ts";
import { formatCount } from "../base/count-words.ts";
import { html, type View } from "../base/html.ts";
import { type Place, pagePath } from "../base/place.ts";
import { Icon } from "../component/icon.ts";

const WORDS: Readonly<Record<string, string>> = {
  local: "Local",
  development: "Development",
  production: "Production",
};

/** Formats "1 needs attention" or "3 need you". */
function formatNeeds(count: number): string {
  return formatCount(count, "needs attention", "need attention");
}

export function EnvironmentSwitch({
  apps,
  places,
  place,
  canMake,
}: {
  apps: readonly App[];
  /** Open attention items by environment. */
  places: readonly EnvironmentSummary[];
  place: Place;
  canMake: boolean;
}): View {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  // Runs before the paint. A later run would close a menu that the user has just opened.
  useLayoutEffect(() => setOpen(false), [place.app, place.environment]);
  useLayoutEffect(() => {
    if (!isOpen) return;
    const close = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", close);
    addEventListener("focusin", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("focusin", close);
    };
  }, [isOpen]);
  const app = apps.find(({ id }) => id === place.app);
  const findAttention = (id: string, environment: string): number =>
    places.find((one) => one.app === id && one.environment === environment)?.needs ?? 0;
  const current = findAttention(place.app, place.environment);
  const elsewhere = places.reduce((sum, { needs }) => sum + needs, 0) - current;
  return html`<div class="place" ref=${box} onKeyDown=${(event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.preventDefault();
    setOpen(false);
  }}>
    <button type="button" class="place-now" aria-expanded=${isOpen} aria-label="${app?.name ?? place.app} ${WORDS[place.environment]}: app and environment${elsewhere > 0 ? `, ${formatNeeds(elsewhere)} in other environments` : ""}, change" onClick=${() => setOpen(!isOpen)}>
      <span class="place-app">${app?.name ?? place.app}</span>${" "}
      <span class="environment environment-${place.environment}">${WORDS[place.environment]}</span>
      ${elsewhere > 0 && html`<span class="trouble-mark" title="${formatNeeds(elsewhere)} in other environments"><${Icon} name="attention" size=${14} /></span>`}
      <${Icon} name="down" size=${14} />
    </button>
    ${
      isOpen &&
      html`<div class="menu">
        ${apps.map(
          ({
            id,
            name,
            environments,
          }) => html`<div key=${id} class="menu-group"><div class="menu-title">${name}</div>
            ${environments.map(
              (
                environment,
              ) => html`<a key=${environment} href=${pagePath({ app: id, environment }, "home")} aria-current=${id === place.app && environment === place.environment}>
                <span class="environment environment-${environment}">${WORDS[environment]}</span>
                ${findAttention(id, environment) > 0 && html`<span class="trouble"><${Icon} name="attention" size=${13} /><span>${formatNeeds(findAttention(id, environment))}</span></span>`}</a>`,
            )}</div>`,
        )}
        ${canMake && html`<div class="menu-group"><a href="/new-app"><${Icon} name="plus" size=${14} />New app</a></div>`}
      </div>`
    }
  </div>`;
}
