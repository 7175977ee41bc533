/** Documents each selling kit on its own page, from its one file. */
import type { Kit, LifeOutcome } from "../../rules/senders/kit.ts";
import { fillNames, KIT_NAMES, kitDefinitions, sellsPlans } from "../../rules/senders/kit-definitions.ts";
import { KITS } from "../../rules/senders/kit-registry.ts";
import { kitPage, kitSteps } from "../../rules/senders/kit-view.ts";
import { requireSender } from "../../rules/senders/registry.ts";
import type { Sender } from "../../rules/senders/sender.ts";
import { signsEvent } from "../../rules/senders/sender-start.ts";
import { writeTable } from "./markdown.ts";
import type { DocPage } from "./page.ts";
import { writeBlock } from "./schema-table.ts";

export function listKits(): string {
  const rows = KITS.map((kit) => {
    const { name, title } = requireSender(kit.sender);
    const sold = sellsPlans(kit) ? "a product and two plans" : "a product";
    return [`[Sell with ${title}](/docs/${kitPage(name)})`, sold];
  });
  return writeTable(["page", "sells"], rows);
}

export function listKitPages(): DocPage[] {
  return KITS.map((kit, order) => {
    const sender = requireSender(kit.sender);
    return {
      id: kitPage(kit.sender),
      title: `Sell with ${sender.title}`,
      summary: `From an account at ${sender.title} to paid access, and what each step of a sale does.`,
      group: "Relays",
      order,
      parent: "selling-kits",
      text: writeKit(kit, sender),
    };
  });
}

const fill = (text: string): string => fillNames(text, KIT_NAMES) as string;

function writeKit(kit: Kit, sender: Sender): string {
  const { name, title } = sender;
  const plans = sellsPlans(kit);
  const { plan, plan2, product } = KIT_NAMES;
  const words = ["init", "--from", name, "--sell", "--product", product];
  if (plans) words.push("--plans", `${plan},${plan2}`);
  return [
    kit.cannot.join(" "),
    ...(signsEvent(sender)
      ? []
      : [
          `${title} does not sign its events, so the kit's relays set \`trustUnsignedEvents\`: a person who knows the secret can send false sales. See [Unsigned events](/docs/definition#unsigned-events).`,
        ]),
    "## From an account to paid access",
    `Write the kit into a folder, with your own names for the product${plans ? " and the plans" : ""}:`,
    writeBlock("sh relay", [`relay ${words.join(" ")}`, "relay validate", "relay dev"].join("\n")),
    ...tryIt(kit),
    `The command writes one file for each relay and \`service/catalog.json\`. Then set up ${title}:`,
    kitSteps(kit, sender, KIT_NAMES)
      .map((step, index) => `${index + 1}. ${step}`)
      .join("\n"),
    `Make a test purchase at ${title}. The customer and the access appear on the page People. In production, [promote](/docs/production) the relays and store the secret of that endpoint.`,
    "## The relays",
    `\`${name}\` has the URL and the secret, and keeps every event as a record. The other relays follow it.`,
    writeTable(["relay", "what it does"], describeRelays(kit, sender)),
    `The names must match: ${title} sends the names that you gave there, and \`when\` of each relay matches them. Add a name to the list in \`when\` to sell the same thing under two names.`,
    "## What each step does",
    `The tests of Relay send these requests in this order, twice, and out of order. The product of the catalog gives 100 credits: change or remove \`credits\`.`,
    "You can [play](/docs/selling-kits#play-a-life-before-you-go-live) each of these lives in local development and in a development environment.",
    ...kit.lives.flatMap(({ name: life, title: heading, steps }) => [
      `### ${heading}`,
      `To play it: \`relay simulate ${name} ${life}\`.`,
      writeTable(
        ["day", "step", "access", ...(plans ? ["plan"] : []), "credits"],
        steps.map(({ day, does, outcome }) => [String(day), fill(does), ...describeOutcome(outcome, plans)]),
      ),
    ]),
    ...(plans
      ? [
          "The relays of the plans read the state of the subscription and no invoice. So a later event corrects the result of an earlier one. A receipt shows the start or the change of a plan, not each payment. A person has one plan at a time: the end of one subscription ends it, also if the customer pays for a second subscription.",
        ]
      : []),
    "## Move from another billing helper",
    moveSteps(kit, plans),
  ].join("\n\n");
}

/** Plays a purchase in local development. */
function tryIt({ sender }: Kit): string[] {
  return [
    "Leave this terminal open. In another one, play a purchase. The command sends requests that are signed as the provider signs, and shows what each step changes:",
    writeBlock("sh relay", `relay simulate ${sender} purchase`),
    writeBlock("text output", `… access … none → ${KIT_NAMES.product}`),
  ];
}

function describeRelays(kit: Kit, sender: Sender): string[][] {
  const { relays } = kitDefinitions(kit, sender, KIT_NAMES);
  const does = [
    `Keeps every event of ${sender.title} as a record.`,
    ...kit.relays.map((one) => fill(one.does)),
  ];
  return relays.map(({ name }, index) => [`\`${name}\``, does[index] ?? ""]);
}

function describeOutcome({ access, plan, credits }: LifeOutcome, plans: boolean): string[] {
  const held = access.map((name) => `\`${fill(name)}\``).join(", ");
  return [held === "" ? "none" : held, ...(plans ? [`\`${fill(plan)}\``] : []), String(credits)];
}

function moveSteps({ sender, relays, bodies }: Kit, plans: boolean): string {
  const [, prefix = "cus_"] = /"(c[a-z]+_)\{run\}"/.exec(JSON.stringify(bodies)) ?? [];
  const needsLink = relays.some(({ customer }) => customer !== undefined);
  const steps = [
    "Keep the old webhook, and register the new endpoint next to it. Both get each event.",
    ...(needsLink
      ? [
          `Link the id of each earlier customer: \`relay people link ada@example.com --customers ${sender} ${prefix}123\`. Create a missing person with \`relay people invite\` first.`,
        ]
      : []),
    ...(plans
      ? [
          "Grant each subscriber access until their next renewal: `relay people grant ada@example.com basic --until 35d`, or `370d` for a yearly plan. The renewal's event then gives the plan, and the manual grant ends by itself. A customer who cancels earlier keeps the manual grant: end it with `relay people end`.",
        ]
      : []),
    "Record each earlier purchase with `relay receipts record`, and the provider's payment as its ref. A relay cannot refund such a receipt: use `relay receipts refund`.",
    "Ask Relay for access in your server instead of the old helper ([Access](/docs/people-and-selling#access)).",
    "Compare some customers in both systems. Then delete the old webhook.",
  ];
  return steps.map((step, index) => `${index + 1}. ${step}`).join("\n");
}
