/** Holds all leases of a store in one process, for modules that ask which node may write. */
import type { LeaseHolder } from "../../src/store/lease/lease-holder.ts";
import type { FencedStore } from "../../src/store/port.ts";

export function holdAll(store: FencedStore): LeaseHolder {
  return { holdsAll: true, holds: () => true, storeOf: () => store };
}
