/** Names the facts of a build, which `scripts/build.ts` writes into the executable. Sources that run without a build have none. */

declare const RELAY_BUILT_AT: string | undefined;
declare const RELAY_RELEASES_URL: string | undefined;

/** The time of the commit that the executable was built from, as ISO 8601; null if it is not known. */
export const BUILT_AT: string | null = typeof RELAY_BUILT_AT === "string" ? RELAY_BUILT_AT : null;

/** The https address below which the releases are published; null if the project had none when it was built. */
export const RELEASES_URL: string | null = typeof RELAY_RELEASES_URL === "string" ? RELAY_RELEASES_URL : null;
