/** Secret that the service just made. The user must copy it now, because it is never shown again. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { CopyButton } from "./copy-button.ts";
import { Notice } from "./notice.ts";

export interface OnceSecret {
  label: string;
  /** Sentence that says what to do with the secret. */
  hint: string;
  value: string;
}

export function SecretOnce({ secrets }: { secrets: readonly OnceSecret[] }): View {
  const shown = useRef<HTMLDivElement>(null);
  // The button that made the secret disappeared with its dialog. A keyboard user would otherwise have no focus.
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
    <${Notice} kind="warn">Copy ${secrets.length === 1 ? "it" : "them"} now: Relay shows ${secrets.length === 1 ? "it" : "them"} only once.<//>
  </div>`;
}
