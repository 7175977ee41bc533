/**
 * The documentation of this program: what people wrote, and what the registries of every room say. It stands over them all, so that no room
 * needs to know that it is documented.
 */
import { Docs } from "./docs/docs.ts";
import { listErrorPages, listErrors } from "./docs/error-page.ts";
import { PACKAGING_FILLS } from "./docs/packaging-part.ts";
import { readWrittenPages } from "./docs/written.ts";

/** What stands where a written page asks for it. */
const FILLS = {
  errors: listErrors,
  ...PACKAGING_FILLS,
};

let manual: Docs | undefined;

/** Put together once, when it is first asked for. */
export function readManual(): Docs {
  manual ??= new Docs([...readWrittenPages(FILLS), ...listErrorPages()]);
  return manual;
}
