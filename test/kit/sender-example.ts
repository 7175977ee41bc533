/** The recorded requests of real providers (test/golden/provider-request.json), as a receiver gets them. */
import type { SignedDraft } from "../../src/rules/verify/contract.ts";
import recorded from "../golden/provider-request.json";

interface ProviderExpectation {
  status: number;
  code?: string;
  json?: Record<string, unknown>;
  absent?: string[];
}

interface ProviderCase {
  id: string;
  why: string;
  request: { method: string; headers: [string, string][]; bodyBase64: string; urlSuffix?: string };
  expect: ProviderExpectation[];
}

interface Provider {
  provider: string;
  url: string;
  secret: string;
  definition: { name: string; trigger: { verify: { scheme: string } } };
  cases: ProviderCase[];
}

export const PROVIDERS_NOW_MS: number = recorded.nowMs;
export const PROVIDERS = recorded.providers as unknown as readonly Provider[];

export function draftOf({ request }: ProviderCase): SignedDraft & { headers: Record<string, string> } {
  return {
    headers: Object.fromEntries(request.headers),
    body: new Uint8Array(Buffer.from(request.bodyBase64, "base64")),
    search: request.urlSuffix ?? "",
  };
}
