/**
 * The address that a request names, whatever its Host says: a call of HTTP/1.0 has none, and anyone may send one that no URL can hold.
 * The host of this address is nobody's word and decides nothing.
 */

const PLACE = "http://localhost";
const ORIGIN = /^[a-z]+:\/\/[^/?#]*/i;

/** Path and query as they were sent; never throws. */
export function addressOf(request: Request): URL {
  const { url } = request;
  return URL.parse(url) ?? URL.parse(PLACE + url.replace(ORIGIN, "")) ?? new URL(PLACE);
}
