/** Secret that the service just made. The user must copy it now, because it is never shown again. Until then the page asks before the user leaves it. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { useLeaveGuard } from "../base/route.ts";
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
  const [copied, setCopied] = useState<ReadonlySet<string>>(new Set());
  const take = (label: string): void => setCopied((before) => new Set(before).add(label));
  useLeaveGuard(secrets.some(({ label }) => !copied.has(label)));
  // The button that made the secret disappeared with its dialog. A keyboard user would otherwise have no focus.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) shown.current?.querySelector("button")?.focus();
  }, []);
  return html`<div class="secret-once" ref=${shown}>
    ${secrets.map(
      ({ label, hint, value }) => html`<div key=${label} class="secret" onCopy=${() => take(label)}>
        <h3>${label}</h3>
        <p class="quiet">${hint}</p>
        <div class="copy-row"><code class="secret-value" data-secret=${label}>${value}</code>
          <${CopyButton} text=${value} label="Copy ${label}" onCopied=${() => take(label)} /></div>
      </div>`,
    )}
    <${Notice} kind="warn">Copy ${secrets.length === 1 ? "it" : "them"} now: Relay shows ${secrets.length === 1 ? "it" : "them"} only once.<//>
  </div>`;
}
