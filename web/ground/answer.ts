/** The shapes of answers that several rooms read, taken from the rooms that make them. Types alone. */
import type { ActionResult } from "../../src/action/contract.ts";
import type { EventItem, EventView, RunView } from "../../src/event/view.ts";
import type { Page } from "../../src/ground/page.ts";
import type { Definition } from "../../src/relay/definition-shape.ts";
import type { RelayItem, RelayView, SavedRelay as Saved } from "../../src/relay/relay-view.ts";
import type { Json } from "./exact-json.ts";

export type { Definition, EventItem, Page, RelayItem };
export type Relay = RelayView;
export type SavedRelay = Saved;

/** What an action did in a run; `type` is `person` where the person could not be found. */
export type Result = Pick<ActionResult, "type" | "outcome"> & {
  code?: string;
  /** The page that explains the code. */
  docs?: string;
  message?: string;
  before?: Json;
  after?: Json;
  answer?: { status: number; body: string };
};

export type Run = Omit<RunView, "results"> & { results: Result[] };

export type Event = Omit<EventView, "payload" | "warnings" | "runs"> & {
  payload: Json;
  warnings: string[];
  runs: Run[];
};
