/** Results of the palette: those of the page at once, those of the service a moment later. */
import { useEffect, useState } from "preact/hooks";
import type { Permission } from "../../src/platform/account/permission.ts";
import type { AlertView } from "../../src/platform/audit/alert.ts";
import { mayIn, type Session, signOut } from "../account/session.ts";
import { formatKind } from "../alert/kind-text.ts";
import type { Page } from "../base/answer.ts";
import { call, sentenceOf, writeQuery } from "../base/api.ts";
import { formatNumber } from "../base/count-words.ts";
import { apiPath, type Place, pagePath } from "../base/place.ts";
import { chooseZone, isAwayFromUtc, timeZone } from "../base/time-words.ts";
import { useLoad } from "../base/use-load.ts";
import { DOCS } from "../component/docs-link.ts";
import type { IconName } from "../component/icon.ts";
import { helpShown } from "../component/keyboard.ts";
import { notifyFailed } from "../component/toast.ts";
import { type FoundSection, openDocs, useFoundSections } from "./docs-result.ts";
import { SECTIONS } from "./navigation-pages.ts";
import { chooseTheme } from "./theme.ts";

interface Shown {
  key: string;
  icon: IconName;
  title: string;
  /** Kind of the result. */
  hint: string;
}

type LinkFinding = Shown & { to: string; act?: undefined };
export type Finding = LinkFinding | (Shown & { act: () => void; to?: undefined });

/** Fewest letters for a search by the service. */
const MIN_ASKED = 3;
const ASK_AFTER_MS = 150;
const MAX_ASKED = 200;
const MAX_SHOWN = 40;
const MAX_NAMES = 200;
/** Number of people at which the service stops a search. */
const MAX_PEOPLE = 8;

interface Found {
  kind: "event" | "person" | "record";
  id: string;
  name: string;
  collection?: string;
}

interface FoundIn {
  place: Place;
  found: readonly Found[];
}

export function useFindings(
  session: Session,
  place: Place,
  typed: string,
): { findings: Finding[]; isLooking: boolean; error: string | null } {
  const names = useNames(place);
  const inEnvironment = useFound([place], typed);
  const own = [...listSections(place), ...names, ...listActs(session, place)]
    .filter((one) => fits(one, typed))
    .toSorted((one, other) => beginsWith(other, typed) - beginsWith(one, typed));
  const things = inEnvironment.results.flatMap(({ found }) => found.map((one) => showFound(place, one)));
  const isEmpty =
    !inEnvironment.isLooking && inEnvironment.error === null && own.length + things.length === 0;
  const elsewhere = useFound(listOtherPlaces(session, place), isEmpty ? typed : "");
  const others = elsewhere.results.flatMap((one) => showElsewhere(one, typed));
  const pages = useFoundSections(typed).map(showSection);
  return {
    findings: [...things, ...own, ...others, ...listSearches(place, typed), ...pages].slice(0, MAX_SHOWN),
    isLooking: inEnvironment.isLooking || elsewhere.isLooking,
    error: inEnvironment.error ?? elsewhere.error,
  };
}

/** Lists the other environments of the app. */
function listOtherPlaces({ apps }: Session, { app, environment }: Place): Place[] {
  const environments = apps.find(({ id }) => id === app)?.environments ?? [];
  return environments.filter((one) => one !== environment).map((one) => ({ app, environment: one }));
}

/** Reports whether every typed word occurs in the result. */
function fits({ title, hint }: Finding, typed: string): boolean {
  const text = `${title} ${hint}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/** Returns 1 if the title begins with the typed text. */
function beginsWith({ title }: Finding, typed: string): number {
  return title.toLowerCase().startsWith(typed.toLowerCase()) ? 1 : 0;
}

/** Searches the places with the service when the user stops typing. */
function useFound(
  places: readonly Place[],
  typed: string,
): { results: readonly FoundIn[]; isLooking: boolean; error: string | null } {
  const [answer, setAnswer] = useState<{ typed: string; results: readonly FoundIn[]; error: string | null }>({
    typed: "",
    results: [],
    error: null,
  });
  const isAsked = typed.length >= MIN_ASKED;
  useEffect(() => {
    if (!isAsked) return;
    const own = new AbortController();
    const query = writeQuery({ q: typed.slice(0, MAX_ASKED) });
    const askOne = async (place: Place): Promise<FoundIn> => {
      const path = apiPath(place, "find") + query;
      const { found } = await call<{ found: Found[] }>("GET", path, undefined, own.signal);
      return { place, found };
    };
    const ask = (): void => {
      Promise.all(places.map(askOne))
        .then((results) => setAnswer({ typed, results, error: null }))
        .catch(
          (thrown) => own.signal.aborted || setAnswer({ typed, results: [], error: sentenceOf(thrown) }),
        );
    };
    const timer = setTimeout(ask, ASK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [typed]);
  const isAnswered = answer.typed === typed;
  const { results, error } = isAsked && isAnswered ? answer : { results: [], error: null };
  return { results, isLooking: isAsked && !isAnswered, error };
}

function showFound(place: Place, { kind, id, name, collection = "" }: Found): LinkFinding {
  const key = `${kind} ${id}`;
  if (kind === "event")
    return { key, icon: "events", title: name, hint: "Event", to: pagePath(place, "events", id) };
  if (kind === "record") {
    const to = pagePath(place, "records", collection, id);
    return { key, icon: "records", title: name, hint: `Record of ${collection}`, to };
  }
  return { key, icon: "person", title: name, hint: "Person", to: pagePath(place, "people", id) };
}

/** Returns one result for all that another environment has. */
function showElsewhere({ place, found: [first, ...more] }: FoundIn, typed: string): Finding[] {
  if (first === undefined) return [];
  const single = showFound(place, first);
  const key = `elsewhere ${place.environment}`;
  const title = `Also in ${place.environment}: `;
  if (more.length === 0) return [{ ...single, key, title: `${title}1 ${first.kind}`, hint: first.name }];
  const count = more.length + 1;
  const least = count >= MAX_PEOPLE ? "at least " : "";
  const to = pagePath(place, "people") + writeQuery({ q: typed });
  return [{ ...single, key, title: `${title}${least}${formatNumber(count)} people`, hint: "People", to }];
}

function showSection({ title, section, path }: FoundSection): Finding {
  const hint = section === title ? "Docs" : `Docs · ${title}`;
  return { key: `docs ${path}`, icon: "help", title: section, hint, act: () => openDocs(path) };
}

function listSections(place: Place): Finding[] {
  return SECTIONS.map(({ path, title, icon, letter }) => ({
    key: `section ${path}`,
    icon,
    title,
    hint: `g ${letter}`,
    to: pagePath(place, path),
  }));
}

/** Returns the named objects: relays, collections and catalog items, and the open alerts. */
function useNames(place: Place): Finding[] {
  const catalog = pagePath(place, "catalog");
  return [
    ...useNamed(place, "relays", "Relay", "relays", (name) => pagePath(place, "relays", name)),
    ...useNamed(place, "collections", "Collection", "records", (name) => pagePath(place, "records", name)),
    ...useNamed(place, "products", "Product", "selling", (open) => catalog + writeQuery({ open })),
    ...useNamed(place, "plans", "Plan", "selling", (open) => catalog + writeQuery({ tab: "plans", open })),
    ...useNamed(
      place,
      "access",
      "Access",
      "selling",
      (open) => catalog + writeQuery({ tab: "access", open }),
    ),
    ...useAlerts(place),
  ];
}

interface Named {
  name: string;
  /** Name of an access slug. */
  slug?: string;
  /** Title of a catalog item. */
  title?: string;
}

function useNamed(
  place: Place,
  list: string,
  hint: string,
  icon: IconName,
  to: (name: string) => string,
): Finding[] {
  const path = apiPath(place, list) + writeQuery({ limit: MAX_NAMES });
  return (useLoad<Page<Named>>(path).data?.items ?? []).map((one) => {
    const name = one.slug ?? one.name;
    const words = one.title === undefined || one.title === name ? hint : `${hint} · ${one.title}`;
    return { key: `${list} ${name}`, icon, title: name, hint: words, to: to(name) };
  });
}

function useAlerts(place: Place): Finding[] {
  const path = apiPath(place, "alerts") + writeQuery({ open: "true", limit: MAX_NAMES });
  const to = pagePath(place, "alerts") + writeQuery({ tab: "alerts" });
  const items = useLoad<Page<AlertView>>(path).data?.items ?? [];
  // An alert repeats every hour. Only the newest of each cause is a result.
  const causes = new Map(items.toReversed().map((one) => [`${one.code} ${one.target}`, one]));
  return [...causes.values()].map(({ id, code, message }) => ({
    key: id,
    icon: "attention",
    title: message,
    hint: `Alert · ${formatKind(code) ?? code}`,
    to,
  }));
}

function listActs(session: Session, place: Place): Finding[] {
  const go = (title: string, icon: IconName, to: string): Finding => ({
    key: title,
    icon,
    title,
    hint: "Go",
    to,
  });
  const act = (title: string, icon: IconName, work: () => void): Finding => ({
    key: title,
    icon,
    title,
    hint: "Do",
    act: work,
  });
  const own = mayIn(session, place);
  const may = (permission: Permission): boolean => own.includes(permission);
  const switches = session.apps.flatMap(({ id, name, environments }) =>
    environments
      .filter((environment) => id !== place.app || environment !== place.environment)
      .map((environment) => {
        const app = session.apps.length > 1 ? ` of ${name}` : "";
        return go(`Switch to ${environment}${app}`, "screen", pagePath({ app: id, environment }, "home"));
      }),
  );
  return [
    ...(may("edit_definitions") ? [go("New relay", "plus", pagePath(place, "relays", "new"))] : []),
    go(
      may("replay") ? "Replay dead events" : "See dead events",
      may("replay") ? "replay" : "events",
      `${pagePath(place, "events")}?state=dead`,
    ),
    go("See rejected requests", "calls", pagePath(place, "requests")),
    ...(place.environment === "development" && may("request_changes")
      ? [go("Promote to production", "relays", pagePath(place, "relays", "to", "production"))]
      : []),
    ...switches,
    ...(session.mode === "server" && session.may.includes("manage_server")
      ? [go("New app", "plus", "/new-app")]
      : []),
    act("Documentation", "help", () => openDocs(DOCS.all)),
    act("Keyboard shortcuts", "help", () => helpShown.set(true)),
    ...(isAwayFromUtc()
      ? [
          timeZone.get() === "utc"
            ? act("Show times in local time", "clock", () => chooseZone("local"))
            : act("Show times in UTC", "clock", () => chooseZone("utc")),
        ]
      : []),
    act("Light theme", "sun", () => chooseTheme("light")),
    act("Dark theme", "moon", () => chooseTheme("dark")),
    act("System theme", "screen", () => chooseTheme("system")),
    act("Sign out", "exit", () => signOut().catch((error) => notifyFailed(sentenceOf(error)))),
  ];
}

/** Key of the result that searches the events. */
export const SEARCH_EVENTS = "search events";

/** Returns results that search more than names. */
function listSearches(place: Place, typed: string): Finding[] {
  if (typed === "") return [];
  const to = pagePath(place, "events") + writeQuery({ q: typed.slice(0, MAX_ASKED) });
  return [{ key: SEARCH_EVENTS, icon: "search", title: `Events with “${typed}”`, hint: "Search", to }];
}
