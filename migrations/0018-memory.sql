-- What an event remembers of its attempts, so that an edited definition neither loses nor doubles its work.

-- Lists of actions as attempts ran them, by their fingerprint: what an edited action read before is told from here.
CREATE TABLE ran_actions (
  fingerprint TEXT PRIMARY KEY,
  -- JSON list, canonical.
  actions TEXT NOT NULL,
  -- When an attempt ran them last, to within a day.
  used_at INTEGER NOT NULL
) WITHOUT ROWID;

-- The number of the attempt that did the work; NULL where that is older than this.
ALTER TABLE effect ADD COLUMN run INTEGER;

-- The list an attempt ran; NULL where it ended before its actions, or is older than this.
ALTER TABLE run ADD COLUMN actions TEXT;
-- JSON list: the key of the work each action stands for, where that is not its own first one.
ALTER TABLE run ADD COLUMN work TEXT;

-- The relay's version whose map made `mapped`; NULL where that is not known.
ALTER TABLE event ADD COLUMN map_version INTEGER;
-- 1 when `mapped` was made again by a later version and came out otherwise.
ALTER TABLE event ADD COLUMN mapped_again INTEGER NOT NULL DEFAULT 0;
-- JSON list of work keys: actions edited after their work that the last replay runs all the same.
ALTER TABLE event ADD COLUMN chosen TEXT;
