/** Whether a list goes on by itself, and why it rests. */
import { html, type View } from "../ground/html.ts";
import { useRests } from "../ground/reading.ts";

const REST_WORDS = {
  hidden: "Paused while the tab is hidden",
  scrolled: "Paused while you read: scroll up to go on",
  selected: "Paused while text is selected",
} as const;

export function LiveMark(): View {
  const rests = useRests();
  return html`<span class=${rests === null ? "live on" : "live"}><span class="dot" aria-hidden="true" />
    ${rests === null ? "Live" : REST_WORDS[rests]}</span>`;
}
