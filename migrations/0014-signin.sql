-- Sign-in of an app's people: several codes of an address valid together, networks that people signed in from, a counter of sign-ups.

-- Codes live for ten minutes: nobody misses those of the older form.
DROP TABLE person_code;
CREATE TABLE person_code (
  id INTEGER PRIMARY KEY,
  environment_id INTEGER NOT NULL REFERENCES environment (id) ON DELETE CASCADE,
  email_key TEXT NOT NULL,
  -- A keyed hash: six digits would be found again from a plain one.
  code_digest BLOB NOT NULL,
  -- A keyed hash of the network that asked for the code and of its address.
  network_digest BLOB NOT NULL,
  wrong_tries INTEGER NOT NULL DEFAULT 0,
  -- Wrong tries from networks that had not asked for it.
  foreign_tries INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL
);
CREATE INDEX person_code_by_email ON person_code (environment_id, email_key);
CREATE INDEX person_code_by_end ON person_code (expires_at);

-- Where a person signed in from: strangers' requests for codes keep nobody from asking for one there.
CREATE TABLE person_network (
  person_id TEXT NOT NULL REFERENCES person (id) ON DELETE CASCADE,
  network_digest BLOB NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, network_digest)
) WITHOUT ROWID;
CREATE INDEX person_network_by_time ON person_network (seen_at);

ALTER TABLE invite_count ADD COLUMN signups INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER person_session_ends;
CREATE TRIGGER person_session_ends AFTER UPDATE OF status ON person
WHEN NEW.status IN ('suspended', 'erased') BEGIN
  DELETE FROM person_session WHERE person_id = NEW.id;
  DELETE FROM person_network WHERE person_id = NEW.id;
  DELETE FROM person_code WHERE environment_id = OLD.environment_id AND email_key = OLD.email_key;
END;
