/** Types of API responses that several pages read, taken from the modules that produce them. */

import type { Page } from "../../src/base/page.ts";
import type { EventItem, EventView, RunView, ShownResult } from "../../src/engine/event/view.ts";
import type { RecentRequestView } from "../../src/engine/receiver/request.ts";
import type { UnknownRequestView } from "../../src/engine/receiver/unknown-request.ts";
import type { ListedRelayView } from "../../src/insight/overview/health.ts";
import type { Definition } from "../../src/rules/relay/definition-shape.ts";
import type { RelayView, SavedRelay as Saved } from "../../src/rules/relay/relay-view.ts";
import type { Json } from "./exact-json.ts";

export type { Definition, EventItem, Page };
export type RelayItem = ListedRelayView;
export type Relay = RelayView;
export type RecentRequest = RecentRequestView;
export type UnknownRequest = UnknownRequestView;
export type SavedRelay = Saved;

/** Shapes in which the dashboard parses JSON, so that every number stays as written. */
export type Result = Omit<ShownResult, "before" | "after"> & { before?: Json; after?: Json };
export type Run = Omit<RunView, "results"> & { results: Result[] };
export type Event = Omit<EventView, "payload" | "runs"> & { payload: Json; runs: Run[] };
