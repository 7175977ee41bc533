/** Every way to what mends a failure stands under a code that an event may fail with. */
import { expect, test } from "bun:test";
import { explainCode } from "../../src/base/result-code.ts";
import { MEND_WAYS } from "../../web/component/fix-link.ts";

test.each(Object.keys(MEND_WAYS))("%s is a code that the service has", (code) => {
  expect(explainCode(code)).not.toBeNull();
});
