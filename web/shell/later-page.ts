/** Page whose code loads when it first opens. The frame and the title appear at once. A failed load shows an error with a retry button. */
import { useEffect, useState } from "preact/hooks";
import { call, sentenceOf } from "../base/api.ts";
import { makeCell, useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { LoadingState } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";

type PageOf<Props> = (props: Props) => View;

/** `title` is the title until the page sets another; "" for a part of a page. `isFullPage`: the page has no frame, so its placeholder is the main element. */
export function laterPage<Props extends object = PageProps>(
  title: string,
  load: () => Promise<PageOf<Props>>,
  isFullPage = false,
): PageOf<Props> {
  let loaded: PageOf<Props> | undefined;
  const Loading = (): View => {
    const [error, setError] = useState<string | null>(null);
    useEffect(() => {
      load().then(
        (page) => {
          loaded = page;
          arrived.set(arrived.get() + 1);
        },
        () => setError(GONE),
      );
    }, []);
    const retry = (): Promise<void> => reload().catch((thrown) => setError(sentenceOf(thrown)));
    const shown = html`${title !== "" && html`<${PageHead} title=${title} />`}
      <${LoadingState} error=${error} retry="Load again" onRetry=${retry} />`;
    return isFullPage ? html`<main>${shown}</main>` : shown;
  };
  return (props) => {
    useCell(arrived);
    return loaded === undefined ? html`<${Loading} />` : html`<${loaded} ...${props} />`;
  };
}

/** Counts the pages whose code has loaded. */
const arrived = makeCell(0);
const GONE = "This page could not load. The service cannot be reached, or it was updated.";

/** Reloads the dashboard once the service answers. The names of code files change with every version, and a browser remembers a failed import. */
async function reload(): Promise<void> {
  await call("GET", "/api/session");
  location.reload();
}
