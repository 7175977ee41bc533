import { describe, expect, test } from "bun:test";
import { parseSignedPayload } from "../../src/rules/verify/recipe.ts";

describe("a signedPayload that may be saved", () => {
  const rows: [string, string][] = [
    ["the body alone", "{body}"],
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

  test("is read as its pieces", () => {
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
    ["placeholders are the five and no other", "{nonce}.{body}", ["{nonce}, which is not a placeholder"]],
    ["placeholder names are exact", "{Body}", ["{Body}, which is not a placeholder", "none of"]],
    ["one of {body}, {params}, {token} is there", "{timestamp}.", ["none of"]],
    ["exactly one of them", "{params}{body}", ["{params} and {body}"]],
    ["the last of these ends the text", "{body}.{timestamp}", ["goes on after {body}"]],
    ["no literal comes after it", "{body}.", ["goes on after {body}"]],
    ["each appears once: {body}", "{body}{body}", ["{body} more than once"]],
    ["each appears once: {timestamp}", "{timestamp}.{timestamp}.{body}", ["{timestamp} more than once"]],
    ["a space may not surround placeholders", "{timestamp} {body}", ["may not surround"]],
    ["a line break may not", "{timestamp}\n{body}", ["may not surround"]],
    ["a slash may not", "/{body}", ["may not surround"]],
    ["a letter outside ASCII may not", "é{body}", ["may not surround"]],
    ["a brace may not", "{{body}", ["may not surround"]],
    ["an unclosed brace may not", "{body", ["none of", "may not surround"]],
    ["at most 40 literal characters", `${"a".repeat(41)}{body}`, ["41 characters"]],
    ["a digit never comes right after {timestamp}", "{timestamp}0.{body}", ["a digit right after"]],
    ["{params} never comes right after {timestamp}", "{timestamp}{params}", ["{params} right after"]],
    ["all broken rules are named", "{x} {body}{body}1", ["not a placeholder", "more than once", "goes on", "may not surround"]],
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
