/** Paths of sections that earlier releases and the API use, with the first part of their present addresses. */
const MOVED: ReadonlyMap<string, string> = new Map([
  ["calls", "requests"],
  ["collections", "records"],
  ["selling", "catalog"],
  ["attention", "alerts"],
  ["audit", "audit-log"],
]);

/** Returns the present path for a section's old one, or null. */
export function findMovedPath(path: string): string | null {
  return MOVED.get(path) ?? null;
}
