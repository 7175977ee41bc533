/** Formats the path of a request for a log: a part that may be a secret or a token is shown only by its length. */
import { mayBeRelayName } from "../../engine/receiver/unknown-name.ts";

const ID = /^[a-z]{3}_[0-9a-f]{32}$/;
/** Other parts of an address that cannot be secret, for example `app_test` or `openapi.json`. */
const WORD = /^[a-z._]{1,40}$/;

/** Returns the path with possible secrets hidden, for example `/hooks/shop/<44 characters>`. */
export function loggedPath(pathname: string): string {
  return pathname
    .split("/")
    .map((part) =>
      part === "" || ID.test(part) || WORD.test(part) || mayBeRelayName(part) ? part : hide(part),
    )
    .join("/");
}

function hide(part: string): string {
  return `<${part.length} characters>`;
}
