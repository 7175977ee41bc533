/** Icons: thin strokes in the color of the text. Screen readers skip them and read the words next to them. */
import { html, type View } from "../base/html.ts";

const PATHS = {
  home: "M4 11 12 4l8 7M6 9.5V20h12V9.5M10 20v-5h4v5",
  relays: "M4 7h9a3 3 0 0 1 3 3v0a3 3 0 0 0 3 3h1M17 10l3 3-3 3M4 17h6",
  events: "M4 6h16M4 12h10M4 18h7",
  calls: "M4 12h9m-4-4 4 4-4 4M15 5h3a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2h-3",
  attention: "M12 4 3 19h18L12 4Zm0 6v4m0 2.5v.5",
  records:
    "M4 6c0-1.4 3.6-2.5 8-2.5S20 4.6 20 6s-3.6 2.5-8 2.5S4 7.4 4 6Zm0 0v12c0 1.4 3.6 2.5 8 2.5s8-1.1 8-2.5V6M4 12c0 1.4 3.6 2.5 8 2.5s8-1.1 8-2.5",
  mail: "M4 6h16v12H4V6Zm0 1 8 6 8-6",
  keys: "M15.5 3.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10ZM12 12l-8 8m2-2 2.5 2.5M9 15l2 2",
  selling: "M4 4h7.5l8.5 8.5-7.5 7.5L4 11.5V4Zm4 3.5v1",
  audit: "M6 3h12v18H6V3Zm3 5h6m-6 4h6m-6 4h3",
  settings:
    "M4 7h9m5 0h2M4 12h2m5 0h9M4 17h9m5 0h2M15.5 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4Zm-7 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4Zm7 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm0-5v2m0 14v2M3 12h2m14 0h2M5.6 5.6 7 7m10 10 1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z",
  credits: "M9 5.5a5 5 0 1 0 0 10 5 5 0 0 0 0-10Zm5.6.2a5 5 0 1 1-4.2 9M9 8v5",
  screen: "M3 5h18v11H3V5Zm6 15h6m-3-4v4",
  copy: "M9 9h11v11H9V9Zm-5 6V4h11",
  check: "m5 12.5 4.5 4.5L19 7.5",
  cross: "m6 6 12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm5 11.5L20 20",
  pause: "M8 5v14M16 5v14",
  play: "M7 5v14l11-7L7 5Z",
  replay: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
  chevron: "m9 6 6 6-6 6",
  down: "m6 9 6 6 6-6",
  up: "m6 15 6-6 6 6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16Zm0 4v4l3 2",
  skip: "M5 6v12l8-6-8-6Zm13 0v12",
  menu: "M4 7h16M4 12h16M4 17h16",
  exit: "M14 4h5v16h-5M4 12h11m-4-4 4 4-4 4",
  file: "M6 3h8l4 4v14H6V3Zm8 0v4h4",
  person: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM4.5 20a7.5 7.5 0 0 1 15 0",
  bolt: "M13 3 5 14h6l-1 7 8-11h-6l1-7Z",
  trash: "M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13",
  help: "M9 9.5a3 3 0 1 1 4.5 2.6c-.9.5-1.5 1.1-1.5 2.1M12 17.5v.2",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): View {
  return html`<svg class="icon" width=${size} height=${size} viewBox="0 0 24 24" fill="none" stroke="currentColor"
    stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d=${PATHS[name]} /></svg>`;
}
