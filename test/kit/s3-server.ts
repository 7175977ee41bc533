/**
 * A small S3 endpoint: PUT, multipart uploads, GET, HEAD, DELETE and ListObjectsV2 of one bucket. It requires a SigV4 header of its access key ID, and
 * can refuse, be slow and lose parts of objects.
 */

export const S3_KEYS = { accessKeyId: "AKIATEST", secretAccessKey: "a-secret-access-key" };

interface S3Server extends AsyncDisposable {
  readonly url: string;
  readonly bucket: string;
  /** The complete objects by key, oldest first. */
  readonly objects: Map<string, Buffer>;
  /** Method and path of each request. */
  readonly requests: string[];
  /** The uploads that were begun and not completed. */
  readonly openUploads: Map<string, Map<number, Buffer>>;
  /** The code with which every request is refused; null for none. */
  refusal: string | null;
  /** Resolves before each answer. */
  pause: Promise<unknown>;
}

const REFUSAL_STATUS: Readonly<Record<string, number>> = { AccessDenied: 403, NoSuchBucket: 404, SlowDown: 503 };
/** A page of a list is shorter than that of S3, so that a test has several pages. */
const PAGE_KEYS = 3;

export function startS3Server(): S3Server {
  const objects = new Map<string, Buffer>();
  const storedAt = new Map<string, number>();
  const openUploads = new Map<string, Map<number, Buffer>>();
  const requests: string[] = [];
  let puts = 0;
  const bucket = "backups";
  const put = (key: string, bytes: Buffer): void => {
    objects.delete(key);
    objects.set(key, bytes);
    puts += 1;
    storedAt.set(key, Date.UTC(2030, 0, 1) + puts * 1_000);
  };

  async function answer(request: Request): Promise<Response> {
    const url = new URL(request.url);
    requests.push(`${request.method} ${url.pathname}${url.search}`);
    await server.pause;
    const authorization = request.headers.get("authorization") ?? "";
    if (!authorization.startsWith(`AWS4-HMAC-SHA256 Credential=${S3_KEYS.accessKeyId}/`)) return refuse("InvalidAccessKeyId", 403);
    if (server.refusal !== null) return refuse(server.refusal, REFUSAL_STATUS[server.refusal] ?? 400);
    const [, wanted = "", ...rest] = decodeURIComponent(url.pathname).split("/");
    if (wanted !== bucket) return refuse("NoSuchBucket", 404);
    const key = rest.join("/");
    const upload = url.searchParams.get("uploadId");
    if (url.searchParams.has("list-type")) return list(url.searchParams);
    if (request.method === "POST" && url.searchParams.has("uploads")) return beginUpload();
    if (upload !== null) return await continueUpload(request, key, upload, Number(url.searchParams.get("partNumber")));
    return await serveObject(request, key);
  }

  function beginUpload(): Response {
    const id = `upload-${openUploads.size}`;
    openUploads.set(id, new Map());
    return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`);
  }

  async function continueUpload(request: Request, key: string, id: string, part: number): Promise<Response> {
    const parts = openUploads.get(id);
    if (parts === undefined) return refuse("NoSuchUpload", 404);
    if (request.method === "PUT") {
      parts.set(part, Buffer.from(await request.arrayBuffer()));
      return new Response("", { headers: { etag: `"${part}"` } });
    }
    openUploads.delete(id);
    if (request.method === "POST") put(key, Buffer.concat([...parts].sort(([one], [other]) => one - other).map(([, bytes]) => bytes)));
    return xml('<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>');
  }

  async function serveObject(request: Request, key: string): Promise<Response> {
    if (request.method === "PUT") {
      put(key, Buffer.from(await request.arrayBuffer()));
      return new Response("", { headers: { etag: '"1"' } });
    }
    const object = objects.get(key);
    if (object === undefined) return refuse("NoSuchKey", 404);
    if (request.method === "DELETE") {
      objects.delete(key);
      return new Response(null, { status: 204 });
    }
    const headers = { "content-length": String(object.length), etag: '"1"', "last-modified": new Date(storedAt.get(key) ?? 0).toUTCString() };
    return new Response(request.method === "HEAD" ? null : new Uint8Array(object), { headers });
  }

  function list(query: URLSearchParams): Response {
    const prefix = query.get("prefix") ?? "";
    const from = Number(query.get("continuation-token") ?? 0);
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    const items = keys
      .slice(from, from + PAGE_KEYS)
      .map(
        (key) =>
          `<Contents><Key>${key}</Key><Size>${objects.get(key)?.length}</Size><LastModified>${new Date(storedAt.get(key) ?? 0).toISOString()}</LastModified><ETag>"1"</ETag></Contents>`,
      );
    const next = from + PAGE_KEYS;
    const more = next < keys.length ? `<NextContinuationToken>${next}</NextContinuationToken>` : "";
    return xml(
      `<ListBucketResult><Name>${bucket}</Name><KeyCount>${items.length}</KeyCount><IsTruncated>${more !== ""}</IsTruncated>${more}${items.join("")}</ListBucketResult>`,
    );
  }

  const listener = Bun.serve({ port: 0, idleTimeout: 0, hostname: "127.0.0.1", fetch: answer });
  const server: S3Server = {
    url: `http://127.0.0.1:${listener.port}`,
    bucket,
    objects,
    requests,
    openUploads,
    refusal: null,
    pause: Promise.resolve(),
    [Symbol.asyncDispose]: () => listener.stop(true),
  };
  return server;
}

function xml(body: string): Response {
  return new Response(`<?xml version="1.0" encoding="UTF-8"?>${body}`, { headers: { "content-type": "application/xml" } });
}

function refuse(code: string, status: number): Response {
  return new Response(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>internal words of the endpoint</Message></Error>`, {
    status,
  });
}
