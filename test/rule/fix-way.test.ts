/** Every link to a fix in the dashboard belongs to a code with which an event can fail. */
import { expect, test } from "bun:test";
import { listMeanings } from "../../src/base/code/code.ts";
import { FIX_WAYS } from "../../web/component/fix-link.ts";

test.each(Object.keys(FIX_WAYS))("%s is a code of the service", (code) => {
  expect(listMeanings(code)).not.toEqual([]);
});
