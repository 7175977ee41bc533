/** The head of a page: where one came from, its title (which takes the focus when the page opens), and what can be done there. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { pageTitle } from "../base/page-title.ts";
import { asLeft, mayTakeFocus } from "../base/route.ts";
import { sayTricky } from "../base/tricky.ts";
import { breakable } from "./safe-text.ts";

export function PageHead({
  title: given,
  back,
  backTo,
  children,
  aside,
}: {
  /** May be from outside. */
  title: string;
  back?: string;
  backTo?: string;
  /** Actions, to the right. */
  children?: View;
  /** Beside the title. */
  aside?: View;
}): View {
  const title = sayTricky(given);
  const heading = useRef<HTMLHeadingElement>(null);
  // With the page, and not where somebody has gone on from there: a title that is known a moment later takes no focus away.
  useLayoutEffect(() => {
    pageTitle.set(title);
    if (mayTakeFocus()) heading.current?.focus({ preventScroll: true });
  }, [title]);
  return html`<header class="page-head">
    ${back !== undefined && html`<a class="back" href=${backTo === undefined ? null : asLeft(backTo)} data-back><span aria-hidden="true">‹ </span>${back}</a>`}
    <div class="page-title"><h1 ref=${heading} tabindex="-1">${breakable(title)}</h1>${aside}</div>
    <div class="page-actions">${children}</div>
  </header>`;
}
