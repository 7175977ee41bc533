/** Checks that the dashboard names each problem and alert as the registry does. The dashboard has its own list, because the registry has long texts. */
import { expect, test } from "bun:test";
import { listCodes, listMeanings, titleOf } from "../../src/base/code/code.ts";
import { formatKind } from "../../web/alert/kind-text.ts";

const codes = listCodes().filter((code) => listMeanings(code).some(({ kinds }) => kinds.includes("problem") || kinds.includes("alert")));

test.each(codes)("%s has one title, in the registry and in the dashboard", (code) => {
  expect(titleOf(code)).not.toBe(code);
  expect(formatKind(code)).toBe(titleOf(code));
});
