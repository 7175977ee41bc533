-- The place of a grant in the order of arrival: the number of its event, or of the newest event where no event gave it. NULL: an earlier version gave it.
ALTER TABLE access_grant ADD COLUMN arrival INTEGER;

-- What an event revoked: a grant whose event arrived before it ends as it begins.
CREATE TABLE access_revocation (
  person_id TEXT NOT NULL,
  entitlement TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  environment_id INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  revoked_by TEXT NOT NULL,
  PRIMARY KEY (person_id, entitlement, arrival)
) WITHOUT ROWID;
CREATE INDEX access_revocation_by_arrival ON access_revocation (arrival);

-- The place of a payment in the order of arrival, as a grant's. 0: it is before all others, or its subscription was ended by hand since.
ALTER TABLE purchase ADD COLUMN arrival INTEGER NOT NULL DEFAULT 0;
-- Whether it confirms a plan that the person had, and is no payment.
ALTER TABLE purchase ADD COLUMN confirmation INTEGER NOT NULL DEFAULT 0;

-- Each cancellation of a plan by an event, whether it ended something or not. An empty ref: the action named none.
CREATE TABLE plan_cancellation (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  plan TEXT NOT NULL,
  arrival INTEGER NOT NULL,
  ref TEXT NOT NULL,
  event_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX plan_cancellation_of_person ON plan_cancellation (person_id, arrival, plan, ref);
CREATE INDEX plan_cancellation_by_environment ON plan_cancellation (environment_id, seq);

-- The number that an event's id holds: its last 15 digits.
CREATE TEMP TABLE event_number AS
  WITH RECURSIVE id (event_id) AS (
    SELECT event_id FROM purchase WHERE kind = 'purchase' AND item_kind = 'plan'
    UNION SELECT ended_event_id FROM subscription
    UNION SELECT paid_event_id FROM subscription
    UNION SELECT event_id FROM subscription),
  digit (event_id, at, number) AS (
    SELECT event_id, 22, 0 FROM id WHERE length(event_id) = 36 AND substr(event_id, 1, 4) = 'evt_' AND substr(event_id, 17, 5) = '80008'
    UNION ALL
    SELECT event_id, at + 1, number * 16 + instr('0123456789abcdef', substr(event_id, at, 1)) - 1 FROM digit WHERE at < 37)
  SELECT event_id, number FROM digit WHERE at = 37;
CREATE UNIQUE INDEX temp.event_number_of ON event_number (event_id);

-- Payments that count: of a subscription that relays gave and that events alone ended.
UPDATE purchase SET arrival = (SELECT number FROM event_number WHERE event_number.event_id = purchase.event_id)
  WHERE kind = 'purchase' AND item_kind = 'plan' AND event_id IN (SELECT event_id FROM event_number)
    AND json_extract(data, '$.granted.subscription') IN (SELECT id FROM subscription
      WHERE billed_by = 'relay' AND (status = 'active' OR ended_event_id IS NOT NULL));
CREATE INDEX purchase_of_plan ON purchase (person_id, arrival) WHERE kind = 'purchase' AND item_kind = 'plan';

-- A plan's key is as new as its last payment.
UPDATE access_grant SET arrival = (SELECT max(number) FROM event_number JOIN subscription
    ON event_number.event_id IN (subscription.event_id, subscription.paid_event_id) WHERE subscription.id = access_grant.source_ref)
  WHERE source = 'plan' AND revoked_at IS NULL;

INSERT INTO plan_cancellation (environment_id, person_id, plan, arrival, ref, event_id, created_at)
  SELECT environment_id, person_id, plan, number, coalesce(ended_ref, ''), ended_event_id, ended_at
  FROM subscription JOIN event_number ON event_number.event_id = ended_event_id WHERE ended_at IS NOT NULL
  ON CONFLICT DO NOTHING;
-- What a cancellation that ended nothing left behind.
DELETE FROM subscription WHERE billed_by = 'relay' AND event_id IS NULL AND status = 'ended' AND NOT EXISTS (SELECT 1 FROM purchase
  WHERE kind = 'purchase' AND item_kind = 'plan' AND person_id = subscription.person_id AND json_extract(data, '$.granted.subscription') = subscription.id);
ALTER TABLE subscription DROP COLUMN ended_ref;
ALTER TABLE subscription DROP COLUMN ended_event_id;
ALTER TABLE subscription DROP COLUMN paid_event_id;
DROP TABLE temp.event_number;
