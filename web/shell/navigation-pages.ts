/**
 * Sections of the dashboard, in the order of the navigation, with their pages. The navigation, addresses, shortcuts and the palette use this
 * list. A new section needs its own folder and one entry here. Rarely opened pages use `laterPage`, which loads their code
 * on demand.
 */
import type { ComponentType } from "preact";
import type { View } from "../base/html.ts";
import type { PageProps } from "../base/page.ts";
import type { IconName } from "../component/icon.ts";
import { EventListPage } from "../event/event-list.ts";
import { EventPage } from "../event/event-page.ts";
import { HomePage } from "../home/home-page.ts";
import { RelayListPage } from "../relay/relay-list.ts";
import { laterPage } from "./later-page.ts";

type PageOf = (props: PageProps) => View;

/** Groups of the navigation in their order. Sections without a group come first. */
export const GROUPS = { data: "Data", monitor: "Monitor" } as const;

export interface Section {
  /** First part of its addresses. */
  path: string;
  title: string;
  icon: IconName;
  group: keyof typeof GROUPS | null;
  /** Letter of the shortcut after g. */
  letter: string;
  /** Pages by pattern below `path`. Longer literal patterns must come first. */
  pages: readonly (readonly [pattern: string, page: PageOf])[];
}

export const SECTIONS: readonly Section[] = [
  { path: "home", title: "Home", icon: "home", group: null, letter: "h", pages: [["", HomePage]] },
  {
    path: "relays",
    title: "Relays",
    icon: "relays",
    group: null,
    letter: "r",
    pages: [
      ["", RelayListPage],
      ["new", laterPage("New relay", async () => (await import("../relay/new-relay.ts")).NewRelayPage)],
      // The address has two parts, because a relay can have any name of one part.
      [
        "to/production",
        laterPage(
          "Promote to production",
          async () => (await import("../approval/promote-page.ts")).PromotePage,
        ),
      ],
      [":name", laterPage("Relay", async () => (await import("../relay/relay-page.ts")).RelayPage)],
    ],
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    group: null,
    letter: "e",
    pages: [
      ["", EventListPage],
      [":id", EventPage],
    ],
  },
  {
    path: "requests",
    title: "Requests",
    icon: "calls",
    group: null,
    letter: "q",
    pages: [
      ["", laterPage("Requests", async () => (await import("../request/request-list.ts")).RequestListPage)],
    ],
  },
  {
    path: "people",
    title: "People",
    icon: "person",
    group: "data",
    letter: "p",
    pages: [
      ["", laterPage("People", async () => (await import("../people/person-list.ts")).PersonListPage)],
      [":id", laterPage("Person", async () => (await import("../people/person-page.ts")).PersonPage)],
    ],
  },
  {
    path: "records",
    title: "Records",
    icon: "records",
    group: "data",
    letter: "d",
    pages: [
      [
        "",
        laterPage("Records", async () => (await import("../records/collection-list.ts")).CollectionListPage),
      ],
      [
        ":collection",
        laterPage("Records", async () => (await import("../records/record-list.ts")).RecordListPage),
      ],
      [
        ":collection/:id",
        laterPage("Record", async () => (await import("../records/record-page.ts")).RecordPage),
      ],
    ],
  },
  {
    path: "catalog",
    title: "Catalog",
    icon: "selling",
    group: "data",
    letter: "c",
    pages: [["", laterPage("Catalog", async () => (await import("../selling/catalog-page.ts")).CatalogPage)]],
  },
  {
    path: "mail",
    title: "Mail",
    icon: "mail",
    group: "data",
    letter: "m",
    pages: [["", laterPage("Mail", async () => (await import("../mail/mail-page.ts")).MailPage)]],
  },
  {
    path: "alerts",
    title: "Alerts",
    icon: "attention",
    group: "monitor",
    letter: "a",
    pages: [["", laterPage("Alerts", async () => (await import("../alert/alerts-page.ts")).AlertsPage)]],
  },
  {
    path: "audit-log",
    title: "Audit log",
    icon: "audit",
    group: "monitor",
    letter: "u",
    pages: [["", laterPage("Audit log", async () => (await import("../audit/audit-page.ts")).AuditPage)]],
  },
  {
    path: "settings",
    title: "Settings",
    icon: "settings",
    group: "monitor",
    letter: ",",
    pages: [
      ["", laterPage("Settings", async () => (await import("../settings/settings-page.ts")).SettingsPage)],
    ],
  },
];

export interface FoundPage {
  section: Section;
  page: ComponentType<PageProps>;
  params: Record<string, string>;
}

/** Returns the page at the parts of an address below the place, or null. */
export function findPage([first = "", ...rest]: readonly string[]): FoundPage | null {
  const section = SECTIONS.find(({ path }) => path === first);
  for (const [pattern, page] of section?.pages ?? []) {
    const params = match(pattern, rest);
    if (section !== undefined && params !== null)
      return { section, page: page as ComponentType<PageProps>, params };
  }
  return null;
}

function match(pattern: string, parts: readonly string[]): Record<string, string> | null {
  const wanted = pattern === "" ? [] : pattern.split("/");
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const given = parts[at] ?? "";
    if (part.startsWith(":")) params[part.slice(1)] = given;
    else if (part !== given) return null;
  }
  return params;
}
