/** Gets a document from a server that the operator names, such as the release feed. */
import { parseAllowList } from "./address.ts";
import {
  OperatorClient,
  type OperatorClientOptions,
  type OperatorRequest,
  OperatorRequestFailed,
} from "./operator-client.ts";

/** Most redirects that `fetchDocument` follows. Hosts of releases use one or two. */
const MAX_REDIRECTS = 5;

/**
 * Gets a document and follows redirects. Each address on the way must be https, or http on a host that the operator allows by name. Throws
 * OperatorRequestFailed for any other status than 200.
 */
export async function fetchDocument(
  from: URL,
  {
    maxBytes,
    timeoutMs,
    ...options
  }: OperatorClientOptions & Pick<OperatorRequest, "maxBytes" | "timeoutMs">,
): Promise<string> {
  const { names } = parseAllowList(options.allowPrivate);
  const client = new OperatorClient(options);
  try {
    let url = from;
    for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
      if (url.protocol !== "https:" && !(url.protocol === "http:" && names.has(url.hostname)))
        throw new OperatorRequestFailed(
          `${url.origin} is not https: name an https address, or allow the name of the host with --allow-private.`,
        );
      const { status, headers, body } = await client.request({
        method: "GET",
        url,
        headers: {},
        maxBytes,
        timeoutMs,
      });
      if (status === 200) return new TextDecoder().decode(body);
      const next = status >= 300 && status < 400 ? URL.parse(headers.location ?? "", url) : null;
      if (next === null)
        throw new OperatorRequestFailed(
          `${url.origin}${url.pathname} answered ${status}: check the address (--from).`,
        );
      url = next;
    }
    throw new OperatorRequestFailed(`${from.hostname} redirects more than ${MAX_REDIRECTS} times.`);
  } finally {
    client.close();
  }
}
