/** Record of the last change that a data_change definition watches. It is in view, and the outcome is explained with it. */
import type { CheckedDefinition } from "../../src/interfaces/api/explain.ts";
import type { RecordView } from "../../src/shop/records/record.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { type JsonNode, nodeAt } from "../editor/json-tree.ts";

export interface ChangedRecord {
  record: RecordView;
  change: "created" | "updated" | "deleted";
}

/** Returns null if the definition watches no collection, or no record of it changed. */
export function useChangedRecord(
  place: Place,
  root: JsonNode | null,
  changes: CheckedDefinition["recentChanges"],
): ChangedRecord | null {
  const collection = nodeAt(root, ["trigger", "collection"])?.value ?? "";
  // A deleted record has no data any more.
  const newest = changes?.find(({ change }) => change !== "deleted");
  const path =
    newest === undefined || collection === ""
      ? null
      : apiPath(place, "collections", collection, "records", newest.record);
  const record = useLoad<{ record: RecordView }>(path).data?.record;
  return newest === undefined || record === undefined ? null : { record, change: newest.change };
}
