-- People signed in to an app through the client library: the e-mailed codes that start a session, and the sessions.

-- One live code an address; asking again replaces it.
CREATE TABLE person_code (
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  email_key TEXT NOT NULL,
  -- A keyed hash: six digits would be found again from a plain one.
  code_digest BLOB NOT NULL,
  wrong_tries INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (environment_id, email_key)
) WITHOUT ROWID;
CREATE INDEX person_code_by_end ON person_code (expires_at);

CREATE TABLE person_session (
  token_hash BLOB PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX person_session_by_person ON person_session (person_id);
CREATE INDEX person_session_by_end ON person_session (expires_at);

-- Whoever suspends or erases a person, and however: their sessions end in the same transaction.
CREATE TRIGGER person_session_ends AFTER UPDATE OF status ON person
WHEN NEW.status IN ('suspended', 'erased') BEGIN
  DELETE FROM person_session WHERE person_id = NEW.id;
  DELETE FROM person_code WHERE environment_id = OLD.environment_id AND email_key = OLD.email_key;
END;
