-- What a person who signs in may do: a role in an app and an environment. '*' is every app, or every environment.
CREATE TABLE membership (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  environment TEXT NOT NULL,
  role TEXT NOT NULL,
  -- 1: the role also sees the values of payloads.
  payloads INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment)
) STRICT;
-- Every owner so far may do everything.
INSERT INTO membership (owner_id, app_id, environment, role, payloads, created_at)
  SELECT id, '*', '*', 'owner', 1, created_at FROM owner;
-- The permissions of a key, as a JSON array; NULL: what every secret key may do.
ALTER TABLE api_key ADD COLUMN scopes TEXT;
