-- Calls to names that no receiver of an app has, one row a name, in each environment of the app whose owner may want to know: a sender that
-- was given a wrong URL. A stranger writes the name, so it is cleaned and cut, and a ring of 50 an environment keeps it.
CREATE TABLE unknown_call (
  environment_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- Counts the environment's names; the newest has the highest.
  seq INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  source TEXT NOT NULL,
  -- The receiver that the sender may have meant.
  nearest TEXT,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, name)
) WITHOUT ROWID;
