/** Parsing of ISO 8601 times, which does not depend on the machine's time zone. */
import { expect, test } from "bun:test";
import { parseIso } from "../../src/base/clock.ts";

const NOON = "2030-01-31T12:30:00.000Z";
const TAKEN: readonly (readonly [text: string, means: string])[] = [
  ["2030-01-31", "2030-01-31T00:00:00.000Z"],
  ["2030-01-31T12:30Z", NOON],
  ["2030-01-31t12:30z", NOON],
  ["2030-01-31 12:30:00Z", NOON],
  ["2030-01-31 14:30+0200", NOON],
  ["2030-01-31T07:00:00-05:30", NOON],
  ["2030-02-01T12:29:00+23:59", NOON],
  ["2030-01-31T12:30:00.1Z", "2030-01-31T12:30:00.100Z"],
  ["2030-01-31T12:30:00.123456789Z", "2030-01-31T12:30:00.123Z"],
  ["2032-02-29", "2032-02-29T00:00:00.000Z"],
  ["0099-06-01 00:00Z", "0099-06-01T00:00:00.000Z"],
];

test.each(TAKEN)("%s", (text, means) => {
  expect(new Date(parseIso(text) ?? 0).toISOString()).toBe(means);
});

test.each([
  ["2030-01-31T12:30:00"],
  ["2030-01-31 12:30"],
  ["2030-01-31T24:00:00Z"],
  ["2030-01-31T12:60Z"],
  ["2030-01-31T12:30.5Z"],
  ["2030-01-31T12:30:00,5Z"],
  ["2030-01-31T12:30:00+99:99"],
  ["2030-01-31T12:30:00+24:00"],
  ["2030-01-31T12:30:00+02"],
  ["2030-01-31T12:30:00 Z"],
  ["2030-01-31Z"],
  ["2030-01-31 and more"],
  ["2030-02-30"],
  ["2029-02-29T12:00:00Z"],
  ["2030-00-10"],
  ["30-01-31"],
  ["1900000000000"],
  [""],
])("%p is invalid", (text) => {
  expect(parseIso(text)).toBeNull();
});

test("a time means the same in every time zone of the machine", () => {
  const script = `import { parseIso } from ${JSON.stringify(Bun.fileURLToPath(new URL("../../src/base/clock.ts", import.meta.url)))};
    console.log(JSON.stringify(${JSON.stringify(TAKEN)}.map(([text]) => new Date(parseIso(text)).toISOString())));`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", script], { env: { ...process.env, TZ: "America/New_York" } });
  expect(JSON.parse(stdout.toString())).toEqual(TAKEN.map(([, means]) => means));
});
