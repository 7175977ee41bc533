CREATE TABLE membership (
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id text COLLATE "C" NOT NULL,
  environment text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  payloads bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment)
);
INSERT INTO membership (owner_id, app_id, environment, role, payloads, created_at)
  SELECT id, '*', '*', 'owner', 1, created_at FROM owner;
ALTER TABLE api_key ADD COLUMN scopes text COLLATE "C";
