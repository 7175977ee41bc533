-- The OpenID provider that members sign in with, at most one row. The client secret is sealed; NULL: the client has none.
CREATE TABLE oidc_provider (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  name TEXT NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_secret BLOB,
  groups_claim TEXT NOT NULL,
  -- The domains of allowed addresses, as a JSON array. An empty one allows every domain.
  domains TEXT NOT NULL,
  -- 1: an address counts as verified although the provider does not say so.
  trusts_email INTEGER NOT NULL,
  -- The roles that groups give, as a JSON array.
  roles TEXT NOT NULL,
  -- 0: sign-in with a password is off.
  passwords INTEGER NOT NULL,
  set_at INTEGER NOT NULL
) STRICT;
-- The account of a member at a provider.
CREATE TABLE oidc_identity (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  linked_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_identity_by_owner ON oidc_identity (owner_id, issuer);
-- Sign-ins that wait for the provider's response, each of one browser.
CREATE TABLE oidc_signin (
  state_hash BLOB NOT NULL PRIMARY KEY,
  browser_hash BLOB NOT NULL,
  issuer TEXT NOT NULL,
  client_id TEXT NOT NULL,
  -- The nonce and the code verifier, sealed.
  secrets BLOB NOT NULL,
  -- The session that is authenticated again; NULL: a new session.
  session_id TEXT,
  return_to TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX oidc_signin_by_end ON oidc_signin (expires_at);
-- Sessions that began at a provider, with the sealed ID token that ends the session there; NULL: it is too long.
CREATE TABLE oidc_session (
  session_id TEXT NOT NULL PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  issuer TEXT NOT NULL,
  id_token BLOB
) STRICT, WITHOUT ROWID;
-- Roles that the groups of a member at the provider give, as of the member's last sign-in there.
CREATE TABLE group_membership (
  owner_id TEXT NOT NULL REFERENCES owner (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  environment TEXT NOT NULL,
  role TEXT NOT NULL,
  payloads INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, app_id, environment, role)
) STRICT, WITHOUT ROWID;
