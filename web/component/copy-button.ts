/** Button that copies a text and reports whether that worked. */
import { useEffect, useState } from "preact/hooks";
import { copyText } from "../base/clipboard.ts";
import { html, type View } from "../base/html.ts";
import { Icon } from "./icon.ts";

const SHOWN_MS = 2_000;

export function CopyButton({
  text,
  label,
  words = "Copy",
  onCopied,
}: {
  /** A function builds the text on demand, because that is expensive. */
  text: string | (() => string);
  label: string;
  words?: string | null;
  onCopied?: () => void;
}): View {
  const [outcome, setOutcome] = useState<"copied" | "refused" | null>(null);
  useEffect(() => {
    if (outcome === null) return;
    const timer = setTimeout(() => setOutcome(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(typeof text === "string" ? text : text());
    setOutcome(isCopied ? "copied" : "refused");
    if (isCopied) onCopied?.();
  };
  const status =
    outcome === "copied" ? "Copied" : outcome === "refused" ? "Select the text and press Ctrl+C" : words;
  return html`<button type="button" class="copy ${words === null ? "icon-only" : ""}" aria-label=${status === words ? label : status} title=${label}
    onClick=${() => void copy()}>
    <${Icon} name=${outcome === "copied" ? "check" : "copy"} size=${14} />${status !== null && html`<span>${status}</span>`}
  </button>`;
}
