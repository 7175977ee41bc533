/** Replacements for content: a notice, an empty state that says what to do, an error with a retry button, and a skeleton. */
import { html, type View } from "../base/html.ts";
import { asLeft } from "../base/route.ts";
import { Icon, type IconName } from "./icon.ts";
import { Sentence } from "./sentence.ts";

export function Notice({
  kind,
  children,
}: {
  kind: "info" | "warn" | "bad" | "good";
  children?: View;
}): View {
  const icon = kind === "good" ? "check" : kind === "info" ? "help" : "attention";
  return html`<div class="notice notice-${kind}" role=${kind === "bad" ? "alert" : "note"}><${Icon} name=${icon} />
    <div>${children}</div></div>`;
}

/** Notice above data that could not be reloaded. */
export function StaleNotice({ error }: { error: string }): View {
  return html`<${Notice} kind="warn"><${Sentence} text=${error} /> You see older data.<//>`;
}

export function EmptyState({
  icon,
  title,
  children,
}: {
  icon: IconName;
  title: string;
  children?: View;
}): View {
  return html`<div class="empty"><span class="empty-icon"><${Icon} name=${icon} size=${22} /></span><h2>${title}
    </h2><div>${children}</div></div>`;
}

export function ErrorState({
  error,
  retry = "Try again",
  onRetry,
}: {
  error: string;
  /** Label of the retry button. */
  retry?: string;
  onRetry: () => void;
}): View {
  return html`<div class="empty" role="alert">
    <span class="empty-icon bad"><${Icon} name="attention" size=${22} /></span>
    <h2>This page could not load its data</h2>
    <div><p><${Sentence} text=${error} /></p><button type="button" onClick=${onRetry}>${retry}</button></div>
  </div>`;
}

/** Error for an object that does not exist. Retrying never helps, so it links to the object's list. */
function NotFoundState({ error, back, backTo }: { error: string; back?: string; backTo?: string }): View {
  return html`<div class="empty" role="alert">
    <span class="empty-icon"><${Icon} name="search" size=${22} /></span>
    <h2>Not found</h2>
    <div><p><${Sentence} text=${error} /></p>
      ${backTo !== undefined && html`<a class="button" href=${asLeft(backTo)}>Back to ${back}</a>`}</div>
  </div>`;
}

/** Shows placeholder rows, about as many and as high as the expected rows. */
export function Skeleton({ rows = 6 }: { rows?: number }): View {
  return html`<div class="skeleton" role="group" aria-busy="true" aria-label="Loading">
    ${Array.from({ length: rows }, (_, at) => html`<div key=${at} class="skeleton-row"><span /><span /><span /></div>`)}
  </div>`;
}

/** Shows a skeleton while data loads. After a failure it shows the error with a retry button, or a link to the list if the object does not exist. */
export function LoadingState({
  error,
  isGone = false,
  back,
  backTo,
  rows,
  retry,
  onRetry,
}: {
  error: string | null;
  isGone?: boolean;
  /** Name and address of the object's list. */
  back?: string;
  backTo?: string;
  rows?: number;
  retry?: string;
  onRetry: () => void;
}): View {
  if (error === null) return html`<${Skeleton} rows=${rows} />`;
  return isGone
    ? html`<${NotFoundState} error=${error} back=${back} backTo=${backTo} />`
    : html`<${ErrorState} error=${error} retry=${retry} onRetry=${onRetry} />`;
}
