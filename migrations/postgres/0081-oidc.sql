CREATE TABLE oidc_provider (
  one bigint NOT NULL PRIMARY KEY CHECK (one = 1),
  name text COLLATE "C" NOT NULL,
  issuer text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  client_secret bytea,
  groups_claim text COLLATE "C" NOT NULL,
  domains text COLLATE "C" NOT NULL,
  trusts_email bigint NOT NULL,
  roles text COLLATE "C" NOT NULL,
  passwords bigint NOT NULL,
  set_at bigint NOT NULL
);
CREATE TABLE oidc_identity (
  issuer text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL,
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  linked_at bigint NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX oidc_identity_by_owner ON oidc_identity (owner_id, issuer);
CREATE TABLE oidc_signin (
  state_hash bytea NOT NULL PRIMARY KEY,
  browser_hash bytea NOT NULL,
  issuer text COLLATE "C" NOT NULL,
  client_id text COLLATE "C" NOT NULL,
  secrets bytea NOT NULL,
  session_id text COLLATE "C",
  return_to text COLLATE "C" NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX oidc_signin_by_end ON oidc_signin (expires_at);
CREATE TABLE oidc_session (
  session_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  issuer text COLLATE "C" NOT NULL,
  id_token bytea
);
CREATE TABLE group_membership (
  owner_id text COLLATE "C" NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id text COLLATE "C" NOT NULL,
  environment text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  payloads bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment, role)
);
