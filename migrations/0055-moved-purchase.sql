-- Work remembers its person: the run's, where the event is about another one since. NULL: the event's person.
ALTER TABLE run ADD COLUMN person_id TEXT;

-- Whether a bulk replay also runs what was done for another person.
ALTER TABLE bulk_replay ADD COLUMN move INTEGER NOT NULL DEFAULT 0;

-- A purchase that moved to another person leaves its ref to the new purchase, so that a ref is unique among the others only.
CREATE TABLE new_purchase (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('purchase', 'refund')),
  ref TEXT NOT NULL,
  item_kind TEXT NOT NULL CHECK (item_kind IN ('product', 'plan')),
  item TEXT NOT NULL,
  person_id TEXT NOT NULL,
  origin TEXT NOT NULL CHECK (origin IN ('relay', 'payment')),
  relay_name TEXT,
  event_id TEXT,
  refunds TEXT,
  amount_minor INTEGER,
  currency TEXT,
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  arrival INTEGER NOT NULL DEFAULT 0,
  confirmation INTEGER NOT NULL DEFAULT 0,
  moved_to TEXT
);
INSERT INTO new_purchase (id, environment_id, kind, ref, item_kind, item, person_id, origin, relay_name, event_id, refunds, amount_minor, currency,
    data, created_at, arrival, confirmation)
  SELECT id, environment_id, kind, ref, item_kind, item, person_id, origin, relay_name, event_id, refunds, amount_minor, currency,
    data, created_at, arrival, confirmation FROM purchase;
DROP TABLE purchase;
ALTER TABLE new_purchase RENAME TO purchase;
CREATE UNIQUE INDEX purchase_under_ref ON purchase (environment_id, kind, ref) WHERE moved_to IS NULL;
CREATE INDEX purchase_by_person ON purchase (person_id, created_at);
CREATE INDEX purchase_by_environment ON purchase (environment_id, id);
CREATE INDEX purchase_by_ref ON purchase (environment_id, ref, id);
CREATE INDEX purchase_by_person_id ON purchase (person_id, id);
CREATE INDEX purchase_of_plan ON purchase (person_id, arrival) WHERE kind = 'purchase' AND item_kind = 'plan';
