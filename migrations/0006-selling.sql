-- Products and plans, the immutable receipts, subscriptions.

CREATE TABLE product (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  key TEXT NOT NULL,
  credits INTEGER NOT NULL DEFAULT 0,
  -- JSON: { kind: "payment_link", url } or { kind: "relay", relay }, or NULL.
  sold_through TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;

CREATE TABLE plan (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  is_default INTEGER NOT NULL DEFAULT 0,
  sold_through TEXT,
  version INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX plan_default ON plan (environment_id) WHERE is_default = 1;

-- Receipts and their refunds. A ref belongs to one purchase; a refund is its own row beside it.
CREATE TABLE purchase (
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
  -- A refund names the purchase it takes back.
  refunds TEXT,
  amount_minor INTEGER,
  currency TEXT,
  data TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  UNIQUE (environment_id, kind, ref)
);
CREATE INDEX purchase_by_person ON purchase (person_id, created_at);
CREATE INDEX purchase_by_environment ON purchase (environment_id, id);

CREATE TABLE subscription (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  plan TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'ended')),
  billed_by TEXT NOT NULL CHECK (billed_by IN ('relay', 'processor')),
  processor_customer_id TEXT,
  relay_name TEXT,
  event_id TEXT,
  started_at INTEGER NOT NULL,
  renewed_at INTEGER,
  ended_at INTEGER
);
CREATE UNIQUE INDEX subscription_active ON subscription (environment_id, person_id) WHERE status = 'active';
CREATE INDEX subscription_by_environment ON subscription (environment_id, id);
