/** What a room over a store is handed where one process runs everything. */
import type { Holder } from "../../src/store/lease/lease-holder.ts";
import type { FencedStore } from "../../src/store/port.ts";

export function holdAll(store: FencedStore): Holder {
  return { whole: true, holds: () => true, storeOf: () => store };
}
