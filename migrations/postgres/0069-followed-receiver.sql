-- The receiver relay whose verified requests a relay follows, by name; NULL: it verifies its requests itself, or it is no receiver.
ALTER TABLE relay ADD COLUMN source_name text COLLATE "C";
-- What each relay that follows the receiver did with a request, as JSON; NULL: no relay follows it.
ALTER TABLE recent_request ADD COLUMN followers text COLLATE "C";
