/** Where one is, always in sight, and the way to another app or environment. Production looks like nothing else. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { App } from "../account/session.ts";
import { html, type View } from "../ground/html.ts";
import { type Place, pagePath } from "../ground/place.ts";
import { Icon } from "../part/icon.ts";

const WORDS: Readonly<Record<string, string>> = {
  local: "Local",
  development: "Development",
  production: "Production",
};

export function EnvironmentSwitch({
  apps,
  place,
  canMake,
}: {
  apps: readonly App[];
  place: Place;
  canMake: boolean;
}): View {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => setOpen(false), [place.app, place.environment]);
  useEffect(() => {
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
  return html`<div class="place" ref=${box} onKeyDown=${(event: KeyboardEvent) => {
    if (event.key !== "Escape" || !isOpen) return;
    event.preventDefault();
    setOpen(false);
  }}>
    <button type="button" class="place-now" aria-expanded=${isOpen} aria-label="App ${app?.name ?? place.app}, environment ${WORDS[place.environment]}: change" onClick=${() => setOpen(!isOpen)}>
      <span class="place-app">${app?.name ?? place.app}</span>
      <span class="environment environment-${place.environment}">${WORDS[place.environment]}</span>
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
              ) => html`<a key=${environment} href=${pagePath({ app: id, environment }, "relays")} aria-current=${id === place.app && environment === place.environment}>
                <span class="environment environment-${environment}">${WORDS[environment]}</span></a>`,
            )}</div>`,
        )}
        ${canMake && html`<div class="menu-group"><a href="/new-app"><${Icon} name="plus" size=${14} />New app</a></div>`}
      </div>`
    }
  </div>`;
}
