/** Starting points of a new relay that are a request: one that the user sends now, one that is already here, and a pasted one. */
import { html, type View } from "../../base/html.ts";
import type { Place } from "../../base/place.ts";
import css from "../builder.css" with { type: "text" };
import type { SeenRequest } from "../seen-request.ts";
import { useStyle } from "../style.ts";
import { CaptureStart } from "./capture-start.ts";
import { PasteStart } from "./paste-start.ts";
import { RecentStart } from "./recent-start.ts";

export type StartWay = "capture" | "recent" | "paste";

interface Start {
  way: StartWay;
  title: string;
  summary: string;
}

export const REQUEST_STARTS: readonly Start[] = [
  {
    way: "capture",
    title: "A request I will send now",
    summary: "Relay gives you a URL for one hour and shows each request that arrives.",
  },
  {
    way: "recent",
    title: "A request that is already here",
    summary: "An event of this environment, or a request that Relay rejected.",
  },
  {
    way: "paste",
    title: "A pasted payload or curl command",
    summary: "Copy it from the delivery list or the documentation of the sender.",
  },
];

export function readStartWay(text: string): StartWay | null {
  return REQUEST_STARTS.find(({ way }) => way === text)?.way ?? null;
}

export function RequestStart({
  place,
  way,
  query,
  onRequest,
}: {
  place: Place;
  way: StartWay;
  query: URLSearchParams;
  onRequest: (request: SeenRequest) => void;
}): View {
  useStyle(css);
  const { title } = REQUEST_STARTS.find((one) => one.way === way) ?? { title: "" };
  return html`<section class="card template-preview" aria-label=${title}><div class="block-head"><h2>${title}</h2></div>
    ${way === "capture" && html`<${CaptureStart} place=${place} id=${query.get("capture") ?? ""} onRequest=${onRequest} />`}
    ${way === "recent" && html`<${RecentStart} place=${place} onRequest=${onRequest} />`}
    ${way === "paste" && html`<${PasteStart} onRequest=${onRequest} />`}
  </section>`;
}
