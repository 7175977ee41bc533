/** A secret that the service just made, to be copied now: it is shown here and nowhere again. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { CopyButton } from "./copy-button.ts";
import { Notice } from "./notice.ts";

export interface OnceSecret {
  label: string;
  /** What to do with it, in one sentence. */
  hint: string;
  value: string;
}

export function SecretOnce({ secrets }: { secrets: readonly OnceSecret[] }): View {
  const shown = useRef<HTMLDivElement>(null);
  // The button that made it has gone with its question, and whoever has no mouse would be nowhere.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) shown.current?.querySelector("button")?.focus();
  }, []);
  return html`<div class="secret-once" ref=${shown}>
    ${secrets.map(
      ({ label, hint, value }) => html`<div key=${label} class="secret">
        <h3>${label}</h3>
        <p class="quiet">${hint}</p>
        <div class="copy-row"><code class="secret-value" data-secret=${label}>${value}</code>
          <${CopyButton} text=${value} label="Copy ${label}" /></div>
      </div>`,
    )}
    <${Notice} kind="warn">Copy ${secrets.length === 1 ? "it" : "them"} now: ${secrets.length === 1 ? "it" : "they"} will not be shown again, here or anywhere else.<//>
  </div>`;
}
