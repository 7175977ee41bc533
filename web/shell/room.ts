/**
 * Every room of the dashboard, in the order of the navigation, and the pages each has. A new room is its own folder and one entry here;
 * the navigation, the addresses and the keyboard's letters are read from it.
 */
import type { ComponentType } from "preact";
import { PromotePage } from "../approval/promote-page.ts";
import { CallListPage } from "../call/call-list.ts";
import { EventListPage } from "../event/event-list.ts";
import { EventPage } from "../event/event-page.ts";
import type { View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { HomePage } from "../home/home-page.ts";
import { KeyListPage } from "../key/key-list.ts";
import { MailboxPage } from "../mail/mailbox.ts";
import type { IconName } from "../part/icon.ts";
import { CollectionListPage } from "../record/collection-list.ts";
import { RecordListPage } from "../record/record-list.ts";
import { RecordPage } from "../record/record-page.ts";
import { NewRelayPage } from "../relay/new-relay.ts";
import { RelayListPage } from "../relay/relay-list.ts";
import { RelayPage } from "../relay/relay-page.ts";
import { AttentionPage } from "../watch/attention.ts";

type PageOf = (props: PageProps) => View;

export interface Room {
  /** First part of its addresses. */
  path: string;
  title: string;
  icon: IconName;
  /** With g before it, goes there. */
  letter: string;
  /** By pattern below `path`; the longest literal match is listed first. */
  pages: readonly (readonly [pattern: string, page: PageOf])[];
}

export const ROOMS: readonly Room[] = [
  { path: "home", title: "Home", icon: "home", letter: "h", pages: [["", HomePage]] },
  {
    path: "relays",
    title: "Relays",
    icon: "relays",
    letter: "r",
    pages: [
      ["", RelayListPage],
      ["new", NewRelayPage],
      // Two parts, because a relay may have any name of one.
      ["to/production", PromotePage],
      [":name", RelayPage],
    ],
  },
  {
    path: "events",
    title: "Events",
    icon: "events",
    letter: "e",
    pages: [
      ["", EventListPage],
      [":id", EventPage],
    ],
  },
  { path: "calls", title: "Calls", icon: "calls", letter: "l", pages: [["", CallListPage]] },
  { path: "attention", title: "Attention", icon: "attention", letter: "a", pages: [["", AttentionPage]] },
  {
    path: "collections",
    title: "Records",
    icon: "records",
    letter: "c",
    pages: [
      ["", CollectionListPage],
      [":collection", RecordListPage],
      [":collection/:id", RecordPage],
    ],
  },
  { path: "mail", title: "Mail", icon: "mail", letter: "m", pages: [["", MailboxPage]] },
  { path: "keys", title: "Keys", icon: "keys", letter: "k", pages: [["", KeyListPage]] },
];

export interface FoundPage {
  room: Room;
  page: ComponentType<PageProps>;
  params: Record<string, string>;
}

/** The page at the parts of an address below the place; null where there is none. */
export function findPage([first = "", ...rest]: readonly string[]): FoundPage | null {
  const room = ROOMS.find(({ path }) => path === first);
  for (const [pattern, page] of room?.pages ?? []) {
    const params = match(pattern, rest);
    if (room !== undefined && params !== null)
      return { room, page: page as ComponentType<PageProps>, params };
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
