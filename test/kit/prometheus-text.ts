/** Reads Prometheus' text format strictly: each line must match the grammar, and each sample must follow its TYPE. */

interface MetricFamily {
  type: string;
  help: string;
  /** Maps `name{label="value"}` as written to its value. */
  samples: Map<string, number>;
}

const HELP = /^# HELP ([a-zA-Z_:][\w:]*) (.+)$/;
const TYPE = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary|untyped)$/;
const SAMPLE =
  /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"(?:,(?=[a-zA-Z_])|(?=\})))*\})? ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/i;

/** Returns the families by name. Throws at the first line that is not in the format. */
export function parsePrometheus(text: string): Map<string, MetricFamily> {
  if (!text.endsWith("\n")) throw new Error("The text does not end with a newline.");
  const families = new Map<string, MetricFamily>();
  let current: { name: string; family: MetricFamily } | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const [, helpName, help] = HELP.exec(line) ?? [];
    if (helpName !== undefined && help !== undefined) {
      if (families.has(helpName)) throw new Error(`${helpName} stands twice.`);
      current = { name: helpName, family: { type: "", help, samples: new Map() } };
      families.set(helpName, current.family);
      continue;
    }
    const [, typeName, type] = TYPE.exec(line) ?? [];
    if (typeName !== undefined && type !== undefined) {
      if (current?.name !== typeName) throw new Error(`A TYPE without its HELP: ${line}`);
      current.family.type = type;
      continue;
    }
    const [, name = "", labels = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (current === null || !belongs(name, current)) throw new Error(`No sample of its family: ${line}`);
    const key = name + labels;
    if (current.family.samples.has(key)) throw new Error(`${key} stands twice.`);
    current.family.samples.set(key, Number(value.replace("Inf", "Infinity")));
  }
  return families;
}

/** Returns the value of one sample, or 0 if it does not exist yet. */
export function sampleOf(text: string, key: string): number {
  const family = parsePrometheus(text).get(key.replace(/\{.*$|_(bucket|sum|count)$/g, ""));
  return family?.samples.get(key) ?? 0;
}

function belongs(name: string, { name: family, family: { type } }: { name: string; family: MetricFamily }): boolean {
  const endings = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  return endings.some((ending) => name === family + ending);
}
