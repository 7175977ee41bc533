/** Reads the settings of the container from packaging/Dockerfile, so that an image that is built without Docker has the same ones. */

/** The settings as the configuration of an image has them. Healthcheck is Docker's addition to the OCI format. */
export interface ContainerSettings {
  User: string;
  Env: string[];
  Entrypoint: string[];
  Cmd: string[];
  WorkingDir: string;
  Volumes: Record<string, object>;
  ExposedPorts: Record<string, object>;
  StopSignal: string;
  /** Times are in nanoseconds. */
  Healthcheck: { Test: string[]; Interval: number; Timeout: number; StartPeriod: number; Retries: number };
}

/** The instructions that describe no setting: the files of the image have their own list. */
const FILES = ["FROM", "COPY"];
const PATH = "PATH=/usr/local/bin:/usr/bin:/bin";

/** Reads the last stage of a Dockerfile. Throws for an instruction that no setting follows from. */
export function readContainer(dockerfile: string): ContainerSettings {
  const lines = dockerfile.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")));
  const settings: Partial<ContainerSettings> = {};
  for (const line of stage) {
    const [, word = "", rest = ""] = /^(\S+) (.*)$/.exec(line) ?? [];
    if (FILES.includes(word)) continue;
    const read = READERS[word];
    if (read === undefined)
      throw new Error(
        `The Dockerfile has the line "${line}", which dockerfile.ts does not know: add it there.`,
      );
    Object.assign(settings, read(rest));
  }
  return settings as ContainerSettings;
}

const READERS: Readonly<Record<string, (rest: string) => Partial<ContainerSettings>>> = {
  USER: (rest) => ({ User: rest }),
  ENV: (rest) => ({ Env: [PATH, ...rest.split(" ")] }),
  ENTRYPOINT: (rest) => ({ Entrypoint: JSON.parse(rest) }),
  CMD: (rest) => ({ Cmd: JSON.parse(rest) }),
  WORKDIR: (rest) => ({ WorkingDir: rest }),
  VOLUME: (rest) => ({ Volumes: { [rest]: {} } }),
  EXPOSE: (rest) => ({ ExposedPorts: { [`${rest}/tcp`]: {} } }),
  STOPSIGNAL: (rest) => ({ StopSignal: rest }),
  HEALTHCHECK: (rest) => ({
    Healthcheck: {
      Test: ["CMD", ...JSON.parse(rest.slice(rest.indexOf("[")))],
      Interval: readSeconds(rest, "interval"),
      Timeout: readSeconds(rest, "timeout"),
      StartPeriod: readSeconds(rest, "start-period"),
      Retries: Number(/--retries=(\d+)/.exec(rest)?.[1]),
    },
  }),
};

function readSeconds(rest: string, flag: string): number {
  return Number(new RegExp(`--${flag}=(\\d+)s `).exec(rest)?.[1]) * 1e9;
}
