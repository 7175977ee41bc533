/** Place: the app and the environment that every address and API path contains. */

type EnvironmentName = "local" | "development" | "production";

export interface Place {
  app: string;
  environment: EnvironmentName;
}

const LAST = "relay.place";

/** Returns the place of an address such as `/apps/shop/production/relays` and the remaining parts, or null. */
export function readPlace(path: string): { place: Place; rest: string[] } | null {
  const [apps, app, environment, ...rest] = path
    .split("/")
    .filter((part) => part !== "")
    .map(decodePart);
  if (apps !== "apps" || app === undefined || !isEnvironmentName(environment)) return null;
  return { place: { app, environment }, rest };
}

/** Returns the address of a page in the place. */
export function pagePath(place: Place, ...parts: string[]): string {
  return ["/apps", place.app, place.environment, ...parts]
    .map((part, at) => (at === 0 ? part : encodeURIComponent(part)))
    .join("/");
}

/** Returns the API path in the place. */
export function apiPath(place: Place, ...parts: string[]): string {
  return `/api${pagePath(place, ...parts)}`;
}

export function rememberPlace(place: Place): void {
  try {
    localStorage.setItem(LAST, pagePath(place));
  } catch {
    // The dashboard opens the first environment if there is no storage.
  }
}

export function recallPlace(): Place | null {
  try {
    return readPlace(localStorage.getItem(LAST) ?? "")?.place ?? null;
  } catch {
    return null;
  }
}

function isEnvironmentName(name: string | undefined): name is EnvironmentName {
  return name === "local" || name === "development" || name === "production";
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
