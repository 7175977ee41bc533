/** Every verification scheme, one line each. Everything that lists schemes (checks, the JSON Schema, the dashboard, the docs) reads this. */
import type { Scheme } from "./contract.ts";
import { hooks } from "./hooks.ts";
import { processor } from "./processor.ts";
import { sharedToken } from "./shared-token.ts";
import { signature } from "./signature.ts";

/** Each scheme takes its own fields, which callers have checked against its shape. */
export const SCHEMES = [signature, processor, hooks, sharedToken] as unknown as readonly Scheme[];

/** The earlier name of `signature`: refused at save, and answered 401 `scheme_renamed` where it is still stored. */
export const RENAMED_SCHEME = "hmac_sha256_header";

const BY_NAME: ReadonlyMap<string, Scheme> = new Map(SCHEMES.map((scheme) => [scheme.name, scheme]));

export function findScheme(name: string): Scheme | null {
  return BY_NAME.get(name) ?? null;
}
