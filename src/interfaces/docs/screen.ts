/** The screenshots for the page about the dashboard, as files next to the code or in the executable. A screenshot is read when it is requested. */
import audit from "../../../docs/screens/audit.webp" with { type: "file" };
import catalog from "../../../docs/screens/catalog.webp" with { type: "file" };
import definition from "../../../docs/screens/definition.webp" with { type: "file" };
import eventDead from "../../../docs/screens/event-dead.webp" with { type: "file" };
import eventsPanel from "../../../docs/screens/events-panel.webp" with { type: "file" };
import find from "../../../docs/screens/find.webp" with { type: "file" };
import home from "../../../docs/screens/home.webp" with { type: "file" };
import homeNarrow from "../../../docs/screens/home-narrow.webp" with { type: "file" };
import mail from "../../../docs/screens/mail.webp" with { type: "file" };
import person from "../../../docs/screens/person.webp" with { type: "file" };
import relay from "../../../docs/screens/relay.webp" with { type: "file" };
import requests from "../../../docs/screens/requests.webp" with { type: "file" };
import rows from "../../../docs/screens/rows.webp" with { type: "file" };
import settings from "../../../docs/screens/settings.webp" with { type: "file" };
import test from "../../../docs/screens/test.webp" with { type: "file" };

/** The path of each file, by the last part of its address. */
export const SCREENS: Readonly<Record<string, string>> = {
  "audit.webp": audit,
  "requests.webp": requests,
  "definition.webp": definition,
  "event-dead.webp": eventDead,
  "events-panel.webp": eventsPanel,
  "find.webp": find,
  "home.webp": home,
  "home-narrow.webp": homeNarrow,
  "mail.webp": mail,
  "person.webp": person,
  "relay.webp": relay,
  "rows.webp": rows,
  "catalog.webp": catalog,
  "settings.webp": settings,
  "test.webp": test,
};
