/** The search for similar people who bought something: spellings and typos of an address, a similar name at the same domain, the same name. */
import { expect, spyOn, test } from "bun:test";
import { fulfilProduct, refundProduct } from "../../src/rules/action/sale.ts";
import { countTypos, listSpellings, listTypos, splitAddress } from "../../src/shop/people/address-similarity.ts";
import { updatePerson } from "../../src/shop/people/person.ts";
import { invitePerson } from "../../src/shop/people/person-invite.ts";
import { listSimilarBuyers } from "../../src/shop/selling/similar-buyer.ts";
import { openSellingStore } from "../kit/selling-store.ts";

const market = await openSellingStore();
const { store, environmentId, clock } = market;
let refs = 0;

async function create(email: string, name?: string) {
  const invite = { environmentId, email, createdBy: "key:test", nowMs: clock.now(), invitesPerDay: 1e6 };
  const { person } = await store.write("app", (tx) => invitePerson(tx, invite));
  if (name === undefined) return person;
  const at = { environmentId, personId: person.id, nowMs: clock.now() };
  return (await store.write("app", (tx) => updatePerson(tx, at, { attributes: { name } }))).after;
}

async function buy(email: string, name?: string) {
  const person = await create(email, name);
  const ref = `pay_${++refs}`;
  await market.sell(fulfilProduct, { type: "fulfil_product", product: "lamp", ref }, person);
  return { person, ref };
}

const SIMILAR: [address: string, bought: string, reason: string | null][] = [
  ["firstlast@one.test", "first.last@two.test", "same_letters"],
  ["mary.jones@one.test", "mary.jones@two.test", "same_letters"],
  ["tagged@one.test", "tagged+shop@one.test", "same_letters"],
  ["other.tag+news@one.test", "othertag@three.test", "same_letters"],
  ["swpaped@one.test", "swapped@one.test", "typo"],
  ["missing@one.test", "mising@one.test", "typo"],
  ["twowrong@one.test", "twovrang@one.test", "typo"],
  ["domain@gnail.test", "domain@gmail.test", "same_letters"],
  ["h.smith@firm.test", "hsmith.billing@firm.test", "same_domain"],
  ["unlike@one.test", "stranger@two.test", null],
];

test.each(SIMILAR)("%s finds %s because of %p", async (address, bought, reason) => {
  const person = await create(address);
  const { person: buyer, ref } = await buy(bought);
  const found = await listSimilarBuyers(store, person);
  const own = found.filter((one) => one.person === buyer.id);
  const purchase = { item: "lamp", ref };
  expect(own).toMatchObject(reason === null ? [] : [{ email: bought, reason, purchase }]);
});

test("the same name finds a buyer, and a person without a purchase or with a refunded one is not shown", async () => {
  const person = await create("grace@one.test", "Grace Hopper");
  const { person: buyer } = await buy("accounting@ships.test", " grace hopper");
  await create("grace@three.test");
  const refunded = await buy("grace@four.test");
  await market.sell(refundProduct, { type: "refund_product", product: "lamp", ref: refunded.ref }, refunded.person);
  expect(await listSimilarBuyers(store, person)).toMatchObject([{ person: buyer.id, reason: "same_name" }]);
});

test("only the newest receipts of a similar person are read", async () => {
  const person = await create("receipts@one.test");
  const [few, many] = [await buy("receipts@two.test"), await buy("receipts@three.test")];
  await market.addRefunds(few.person, 49);
  await market.addRefunds(many.person, 50);
  expect(await listSimilarBuyers(store, person)).toMatchObject([{ person: few.person.id }]);
});

test("the lists of spellings and typos are bounded, and typos are counted with swaps", () => {
  const long = splitAddress(`${"a".repeat(60)}@one.test`);
  expect([listSpellings(long).length, listTypos(long)]).toEqual([2, []]);
  const most = splitAddress(`${"abcdefghijklmnopqrstuvwx"}@one.test`);
  expect(listSpellings(most).length).toBeLessThan(30);
  expect(listTypos(most).length).toBeLessThan(2000);
  const pairs: [string, string, number][] = [
    ["abc", "abc", 0],
    ["abc", "acb", 1],
    ["abc", "ab", 1],
    ["abc", "xyz", 3],
    ["", "ab", 2],
    ["kitten", "sitting", 3],
  ];
  for (const [left, right, typos] of pairs) expect([left, right, countTypos(left, right, 2)]).toEqual([left, right, Math.min(typos, 3)]);
});

/** Counts typos with all places of both texts. */
function countSlowly(left: string, right: string): number {
  const rows = [Array.from({ length: right.length + 1 }, (_, at) => at)];
  const read = (row: number, at: number): number => rows[row]?.[at] ?? 99;
  for (let row = 1; row <= left.length; row++) {
    rows.push([row]);
    for (let at = 1; at <= right.length; at++) {
      const isSwap = row > 1 && left[row - 1] === right[at - 2] && left[row - 2] === right[at - 1];
      const same = left[row - 1] === right[at - 1] ? 0 : 1;
      const steps = [read(row, at - 1) + 1, read(row - 1, at) + 1, read(row - 1, at - 1) + same, isSwap ? read(row - 2, at - 2) + 1 : 99];
      rows[row]?.push(Math.min(...steps));
    }
  }
  return read(left.length, right.length);
}

test("typos are counted as with all places of both texts, whatever the texts", () => {
  const texts = [
    "",
    ..."ab",
    ...["aa", "ab", "ba", "abab", "baba", "aabb", "abba", "abcab", "bcaba", "ababab", "bababa", "aababb", "abcabc", "acbacb"],
  ];
  for (const left of texts)
    for (const right of texts)
      for (const most of [0, 1, 2, 3])
        expect([left, right, most, countTypos(left, right, most)]).toEqual([left, right, most, Math.min(countSlowly(left, right), most + 1)]);
});

test("two long texts cost only the places near each other", () => {
  const long = `${"a".repeat(120)}@${"b".repeat(120)}.test`;
  using min = spyOn(Math, "min");
  expect(countTypos(long, long, 2)).toBe(0);
  expect(min.mock.calls.length).toBeLessThan(10 * long.length);
});

test("the event loop turns while many people are compared", async () => {
  const person = await create("crowd@one.test");
  for (let count = 0; count < 200; count++) await create(`crowd${count}@two.test`);
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await listSimilarBuyers(store, person);
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(8);
});
