/** The operations of the OpenAPI document, and a request that shows whether a caller is admitted to one. */
import type { Permission } from "../../src/platform/account/permission.ts";
import type { ApiServer, Call } from "./api-server.ts";

export interface Operation {
  method: string;
  path: string;
  /** The names of the security schemes. */
  schemes: readonly string[];
  needs: Permission | null;
  /** True if a session needs a recent authentication. */
  isSensitive: boolean;
}

export async function readOperations(api: ApiServer): Promise<Operation[]> {
  type Described = { security: readonly object[]; "x-permission"?: Permission; "x-sensitive"?: boolean };
  const { json } = await api.call("/openapi.json");
  return Object.entries(json.paths as Record<string, Record<string, Described>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { security, ...one }]) => ({
      method: method.toUpperCase(),
      path,
      schemes: security.flatMap((scheme) => Object.keys(scheme)),
      needs: one["x-permission"] ?? null,
      isSensitive: one["x-sensitive"] ?? false,
    })),
  );
}

/** Reports whether keys or sessions use the operation, not the app or its people. */
export const isManagement = ({ schemes }: Operation): boolean => schemes.includes("secretKey") || schemes.includes("session");

/** Returns the code of the refusal; `admitted` when the caller was admitted. An unknown query parameter changes nothing. */
export async function askOperation(
  api: ApiServer,
  { method, path }: Operation,
  who: Call,
  [app, environment]: readonly [string, string],
  approval: string,
): Promise<string> {
  const filled = path
    .replace("/approvals/{id}", `/approvals/${approval}`)
    .replace("{appId}", app)
    .replace("{environment}", environment)
    .replaceAll(/\{\w+\}/g, "unknown");
  const reply = await api.call(`${filled}?qqqq=1`, { ...who, method, ...(method === "GET" ? {} : { body: {} }) });
  return reply.json.code === "invalid_input" && reply.json.message.startsWith("`qqqq`") ? "admitted" : reply.json.code;
}
