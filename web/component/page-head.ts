/** Head of a page: a link back, the title, which takes the focus when the page opens, and the page's actions. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { html, type View } from "../base/html.ts";
import { pageTitle } from "../base/page-title.ts";
import { asLeft, mayTakeFocus } from "../base/route.ts";
import { escapeTricky } from "../base/tricky.ts";
import { breakable } from "./safe-text.ts";

export function PageHead({
  title: given,
  back,
  backTo,
  children,
  aside,
}: {
  /** Title, which may be untrusted text. */
  title: string;
  back?: string;
  backTo?: string;
  /** Actions at the right. */
  children?: View;
  /** Content next to the title. */
  aside?: View;
}): View {
  const title = escapeTricky(given);
  const heading = useRef<HTMLHeadingElement>(null);
  // Runs before the page is painted. The title takes no focus if it arrives late and the user has moved the focus.
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
