-- E-mail: the sender's domain, and every mail with what became of it.

CREATE TABLE sender_domain (
  environment_id INTEGER PRIMARY KEY REFERENCES environment (id) ON DELETE CASCADE,
  domain TEXT NOT NULL,
  verification_token TEXT NOT NULL,
  verified_at INTEGER,
  checked_at INTEGER,
  event_word TEXT NOT NULL DEFAULT 'event',
  account_word TEXT NOT NULL DEFAULT 'account'
);

CREATE TABLE email (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL,
  person_id TEXT,
  recipient TEXT NOT NULL,
  sender TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('event', 'account', 'alert', 'signin')),
  subject TEXT NOT NULL,
  text TEXT NOT NULL,
  -- 'mailbox' is local development: kept to be read in the dashboard, sent nowhere.
  state TEXT NOT NULL CHECK (state IN ('intended', 'sent', 'failed', 'mailbox', 'unknown')),
  message TEXT,
  relay_name TEXT,
  event_id TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER
);
CREATE INDEX email_by_environment ON email (environment_id, seq);
CREATE INDEX email_by_app_hour ON email (environment_id, created_at);
CREATE INDEX email_by_person_day ON email (person_id, created_at) WHERE person_id IS NOT NULL;
