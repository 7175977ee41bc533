/** The path of a request as a log may hold it: a part that may be a secret or a token is only its length. */
import { mayBeRelayName } from "../../engine/receiver/unknown-name.ts";

const ID = /^[a-z]{3}_[0-9a-f]{32}$/;
/** What an address of this service may hold besides names and ids: `app_test`, `openapi.json`. */
const WORD = /^[a-z._]{1,40}$/;

/** `/hooks/shop/<44 characters>` of a path whose last part may be a secret. */
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
