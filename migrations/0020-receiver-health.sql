-- How a relay's receiver is doing: since when it has refused every call, how many they are and when the last one came, and when it last
-- accepted one. Kept in memory by the server and written here now and then; a save of the relay leaves it as it is.
ALTER TABLE relay ADD COLUMN refused_since INTEGER;
ALTER TABLE relay ADD COLUMN refused_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE relay ADD COLUMN refused_at INTEGER;
ALTER TABLE relay ADD COLUMN accepted_at INTEGER;
