/** What release 0.18.0 changes. The release itself puts it into change.ts. */
import type { Release } from "./release.ts";

export const RELEASE_0_18: Release = {
  version: "0.18.0",
  changes: [
    {
      subject: "A server that crashes again and again",
      was: "Seven crashes within seconds used up all attempts of the events that were running, so they were dead.",
      now: "An event runs again at once after its first cut-off. After each further one it waits as after a failed attempt of that number.",
    },
    {
      subject: "Home after an erasure",
      was: "Home answered with an error while the newest dead event of a relay was expunged, or its person erased.",
      now: "Home shows the dead event, and says that it never runs again.",
    },
  ],
  codesAdded: [],
  codesRemoved: [],
};
