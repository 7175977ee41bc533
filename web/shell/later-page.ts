/** A page whose code is loaded when it is first opened: the frame stands meanwhile, with the page's title; a failed load says so and a way out. */
import { useEffect, useState } from "preact/hooks";
import { call, sentenceOf } from "../base/api.ts";
import { makeCell, useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import { NotYet } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";

type PageOf<Props> = (props: Props) => View;

/** `title` stands in the head until the page knows a better one. `isAlone`: it stands in no frame, so it is the page's main part meanwhile. */
export function laterPage<Props extends object = PageProps>(
  title: string,
  load: () => Promise<PageOf<Props>>,
  isAlone = false,
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
    const again = (): Promise<void> => reload().catch((thrown) => setError(sentenceOf(thrown)));
    const shown = html`<${PageHead} title=${title} />
      <${NotYet} error=${error} retry="Load again" onRetry=${again} />`;
    return isAlone ? html`<main>${shown}</main>` : shown;
  };
  return (props) => {
    useCell(arrived);
    return loaded === undefined ? html`<${Loading} />` : html`<${loaded} ...${props} />`;
  };
}

/** Counts the pages whose code has come. */
const arrived = makeCell(0);
const GONE = "This page could not be loaded: the service cannot be reached, or it was updated since.";

/** A code's name changes with every version and a browser keeps a failed load: the page begins anew, once the service answers. */
async function reload(): Promise<void> {
  await call("GET", "/api/session");
  location.reload();
}
