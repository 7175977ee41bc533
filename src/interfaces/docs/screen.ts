/** The screenshots for the page about the dashboard, as files next to the code or in the executable. A screenshot is read when it is requested. */
import audit from "../../../docs/screens/audit.png" with { type: "file" };
import catalog from "../../../docs/screens/catalog.png" with { type: "file" };
import definition from "../../../docs/screens/definition.png" with { type: "file" };
import eventDead from "../../../docs/screens/event-dead.png" with { type: "file" };
import eventsPanel from "../../../docs/screens/events-panel.png" with { type: "file" };
import find from "../../../docs/screens/find.png" with { type: "file" };
import home from "../../../docs/screens/home.png" with { type: "file" };
import homeNarrow from "../../../docs/screens/home-narrow.png" with { type: "file" };
import mail from "../../../docs/screens/mail.png" with { type: "file" };
import person from "../../../docs/screens/person.png" with { type: "file" };
import relay from "../../../docs/screens/relay.png" with { type: "file" };
import requests from "../../../docs/screens/requests.png" with { type: "file" };
import rows from "../../../docs/screens/rows.png" with { type: "file" };
import settings from "../../../docs/screens/settings.png" with { type: "file" };
import test from "../../../docs/screens/test.png" with { type: "file" };

/** The path of each file, by the last part of its address. */
export const SCREENS: Readonly<Record<string, string>> = {
  "audit.png": audit,
  "requests.png": requests,
  "definition.png": definition,
  "event-dead.png": eventDead,
  "events-panel.png": eventsPanel,
  "find.png": find,
  "home.png": home,
  "home-narrow.png": homeNarrow,
  "mail.png": mail,
  "person.png": person,
  "relay.png": relay,
  "rows.png": rows,
  "catalog.png": catalog,
  "settings.png": settings,
  "test.png": test,
};
