import { describe, expect, test } from "bun:test";
import { parseSignedPayload } from "../../src/rules/verify/recipe.ts";

describe("a signedPayload that can be saved", () => {
  const rows: [string, string][] = [
    ["only the body", "{body}"],
    ["timestamp and body", "{timestamp}.{body}"],
    ["timestamp right before the body", "{timestamp}{body}"],
    ["timestamp right before the token", "{timestamp}{token}"],
    ["timestamp right before the URL", "{timestamp}{url}{body}"],
    ["the URL and the parameters", "{url}{params}"],
    ["letters, digits and . : _ - around placeholders", "v0:aZ_-9.{timestamp}:{body}"],
    ["a letter right after the timestamp", "{timestamp}v1{body}"],
    ["a digit before the timestamp", "v1{timestamp}.{body}"],
    ["40 literal characters", `${"a".repeat(20)}{timestamp}${"b".repeat(20)}{body}`],
  ];
  test.each(rows)("%s: %s", (_rule, text) => {
    expect(parseSignedPayload(text)).not.toHaveProperty("problems");
  });

  test("is parsed into its pieces", () => {
    expect(parseSignedPayload("v0:{timestamp}:{url}.{token}")).toEqual({
      head: [{ literal: "v0:" }, "timestamp", { literal: ":" }, "url", { literal: "." }],
      tail: "token",
      usesTimestamp: true,
      usesUrl: true,
    });
  });
});

describe("a signedPayload that breaks a rule", () => {
  const rows: [string, string, string[]][] = [
    ["only the five placeholders exist", "{nonce}.{body}", ["{nonce}, which is not a placeholder"]],
    ["placeholder names are exact", "{Body}", ["{Body}, which is not a placeholder", "none of"]],
    ["one of {body}, {params}, {token} is required", "{timestamp}.", ["none of"]],
    ["only one of them is allowed", "{params}{body}", ["{params} and {body}"]],
    ["{body}, {params} or {token} is at the end", "{body}.{timestamp}", ["has text after {body}"]],
    ["no literal comes after the last placeholder", "{body}.", ["has text after {body}"]],
    ["each appears once: {body}", "{body}{body}", ["{body} more than once"]],
    ["each appears once: {timestamp}", "{timestamp}.{timestamp}.{body}", ["{timestamp} more than once"]],
    ["spaces around placeholders are refused", "{timestamp} {body}", ["cannot surround"]],
    ["a line break is refused", "{timestamp}\n{body}", ["cannot surround"]],
    ["a slash is refused", "/{body}", ["cannot surround"]],
    ["a letter outside ASCII is refused", "é{body}", ["cannot surround"]],
    ["a brace is refused", "{{body}", ["cannot surround"]],
    ["an unclosed brace is refused", "{body", ["none of", "cannot surround"]],
    ["at most 40 literal characters", `${"a".repeat(41)}{body}`, ["41 characters"]],
    ["a digit never comes right after {timestamp}", "{timestamp}0.{body}", ["a digit directly after"]],
    ["{params} never comes right after {timestamp}", "{timestamp}{params}", ["{params} directly after"]],
    ["all broken rules are reported", "{x} {body}{body}1", ["not a placeholder", "more than once", "has text after", "cannot surround"]],
  ];
  test.each(rows)("%s: %s", (_rule, text, expected) => {
    const parsed = parseSignedPayload(text);
    const problems = "problems" in parsed ? parsed.problems : [];
    expect(problems).toHaveLength(expected.length);
    expected.forEach((words, at) => {
      expect(problems[at]).toContain(words);
    });
  });
});
