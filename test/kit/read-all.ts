/** Reads every page and list of the OpenAPI document: each path with the items that its lists name, each filter with its possible values. */
import type { ApiServer, Reply } from "./api-server.ts";

interface Schema {
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  type?: string;
}

interface Operation {
  security: Record<string, unknown>[];
  parameters: { name: string; in: string; schema: Schema }[];
}

interface ReadOptions {
  /** Token of a signed-in person, for the routes that a person reads. */
  personSession: string;
  /** Values of path parameters that no list names, by the path up to them or by name. */
  named: Readonly<Record<string, readonly string[]>>;
  /** Values of filters by name, in addition to those that the schema lists. */
  filters: Readonly<Record<string, readonly string[]>>;
}

/** The response of an operation. */
interface Read {
  operation: string;
  asked: string;
  status: number;
  text: string;
}

const MAX_NAMED = 60;
const MAX_PAGES = 60;

export async function readAll(api: ApiServer, options: ReadOptions): Promise<Read[]> {
  const { paths } = (await api.call("/openapi.json")).json as { paths: Record<string, { get?: Operation }> };
  const answers = new Map<string, Promise<Reply>>();
  const reads: Read[] = [];

  const ask = (path: string, { security }: Operation): Promise<Reply> => {
    const [by = {}] = security;
    const asked =
      answers.get(path) ??
      api.call(path, {
        ...("secretKey" in by ? { key: api.keys.dev } : {}),
        ...("session" in by ? { session: true } : {}),
        ...("personSession" in by ? { headers: { "x-app-key": api.keys.app, authorization: `Bearer ${options.personSession}` } } : {}),
      });
    answers.set(path, asked);
    return asked;
  };

  /** Returns the items that the list at this path names, by id if they have one. */
  const listedAt = async (template: string, path: string): Promise<string[]> => {
    const operation = paths[template]?.get;
    if (operation === undefined) return [];
    const json = (await ask(`${path}${hasPages(operation) ? "?limit=200" : ""}`, operation)).json as Record<string, unknown> | null;
    const items = Object.values(json ?? {}).find((value) => Array.isArray(value)) as Record<string, unknown>[] | undefined;
    return (items ?? []).map(({ id, name, slug }) => String(id ?? name ?? slug)).slice(0, MAX_NAMED);
  };

  /** Returns the paths for a path template of the document. */
  const fill = async (template: string): Promise<string[]> => {
    let filled = [""];
    let upTo = "";
    for (const part of template.split("/").slice(1)) {
      const name = /^\{(\w+)\}$/.exec(part)?.[1];
      const next: string[] = [];
      for (const path of filled) {
        const values = name === undefined ? [part] : [...(options.named[name] ?? (await listedAt(upTo, path))), ...(options.named[upTo] ?? [])];
        next.push(...values.map((value) => `${path}/${name === undefined ? value : encodeURIComponent(value)}`));
      }
      filled = next;
      upTo += `/${part}`;
    }
    return filled;
  };

  for (const [template, { get: operation }] of Object.entries(paths)) {
    if (operation === undefined) continue;
    for (const path of await fill(template)) {
      const read = async (query: string): Promise<Reply> => {
        const reply = await ask(path + query, operation);
        reads.push({ operation: template, asked: path + query, status: reply.status, text: reply.text });
        return reply;
      };
      const { json } = await read("");
      if (hasPages(operation)) {
        let next: unknown = json?.next === undefined ? null : "";
        for (let page = 0; typeof next === "string" && page < MAX_PAGES; page++)
          next = (await read(`?limit=1${next === "" ? "" : `&cursor=${encodeURIComponent(next)}`}`)).json?.next;
      }
      for (const { name, schema } of operation.parameters.filter((one) => one.in === "query" && one.name !== "limit" && one.name !== "cursor"))
        for (const value of new Set([...valuesOf(schema), ...(options.filters[name] ?? [])])) await read(`?${name}=${encodeURIComponent(value)}`);
    }
  }
  return reads;
}

function hasPages({ parameters }: Operation): boolean {
  return parameters.some(({ name }) => name === "cursor");
}

/** Returns the values that a schema lists. */
function valuesOf(schema: Schema): string[] {
  const own = schema.enum ?? (schema.const === undefined ? [] : [schema.const]);
  return [...own.map(String), ...(schema.type === "boolean" ? ["true", "false"] : []), ...(schema.anyOf ?? []).flatMap(valuesOf)];
}
