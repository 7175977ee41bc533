-- People and what they hold. The ledger and the grants are append-only: what ends is marked, never removed.

CREATE TABLE person (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  email TEXT,
  -- Lower-cased for comparison; NULL once erased.
  email_key TEXT,
  status TEXT NOT NULL CHECK (status IN ('invited', 'active', 'suspended', 'erased')),
  attributes TEXT NOT NULL DEFAULT '{}',
  -- Who created the person, in words, as in record.written_by.
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX person_by_email ON person (environment_id, email_key) WHERE email_key IS NOT NULL;
CREATE INDEX person_by_environment ON person (environment_id, id);

CREATE TABLE person_token (
  environment_id INTEGER NOT NULL,
  token TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, token)
) WITHOUT ROWID;
CREATE INDEX person_token_by_person ON person_token (person_id);

-- People created by address (invites and person_email), counted per UTC day against the cap.
CREATE TABLE invite_count (
  environment_id INTEGER NOT NULL,
  utc_day TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, utc_day)
) WITHOUT ROWID;

-- Access slugs: entitlement `access:<slug>`.
CREATE TABLE access_slug (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  slug TEXT NOT NULL,
  title TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, slug)
) WITHOUT ROWID;

CREATE TABLE access_grant (
  id TEXT PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL,
  entitlement TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('relay', 'purchase', 'plan', 'hand')),
  -- What the source is: the relay's name, the purchase's or subscription's id, the key or owner.
  source_ref TEXT,
  -- The relay that caused it, by name, whatever the source.
  relay_name TEXT,
  event_id TEXT,
  reason TEXT,
  granted_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  revoked_by TEXT
);
CREATE INDEX access_grant_live ON access_grant (person_id, entitlement) WHERE revoked_at IS NULL;
CREATE INDEX access_grant_by_source ON access_grant (source_ref) WHERE source_ref IS NOT NULL;
CREATE INDEX access_grant_by_person ON access_grant (person_id, granted_at);

CREATE TABLE credit (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  person_id TEXT NOT NULL,
  amount INTEGER NOT NULL,
  balance INTEGER NOT NULL,
  reason TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('relay', 'purchase', 'refund', 'hand')),
  relay_name TEXT,
  event_id TEXT,
  -- Applies once per person: `ref:<ref>` from a relay, `key:<key>` from the API, `purchase:<id>`, `refund:<id>`.
  once_key TEXT,
  created_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX credit_once ON credit (person_id, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX credit_by_person ON credit (person_id, seq);
