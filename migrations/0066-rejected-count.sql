-- Rejected requests over time, for charts: by the minute for some days and by the hour for as long as events. The empty relay name counts all relays
-- of the environment.
CREATE TABLE rejected_count (
  environment_id INTEGER NOT NULL,
  relay_name TEXT NOT NULL,
  every_ms INTEGER NOT NULL,
  at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (environment_id, relay_name, every_ms, at)
) WITHOUT ROWID;
CREATE INDEX rejected_count_by_time ON rejected_count (every_ms, at);
-- The request log has the last requests of before.
INSERT INTO rejected_count (environment_id, relay_name, every_ms, at, count)
SELECT environment_id, name, every_ms, recent.at - recent.at % every_ms, sum(recent.count)
FROM (SELECT environment_id, relay_name AS name, at, count FROM recent_request WHERE outcome = 'refused'
  UNION ALL SELECT environment_id, '', at, count FROM recent_request WHERE outcome = 'refused') AS recent
CROSS JOIN (SELECT 60000 AS every_ms UNION ALL SELECT 3600000) AS width
GROUP BY environment_id, name, every_ms, recent.at - recent.at % every_ms;
