CREATE TABLE rejected_count (
  environment_id bigint NOT NULL,
  relay_name text COLLATE "C" NOT NULL,
  every_ms bigint NOT NULL,
  at bigint NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (environment_id, relay_name, every_ms, at)
);
CREATE INDEX rejected_count_by_time ON rejected_count (every_ms, at);
INSERT INTO rejected_count (environment_id, relay_name, every_ms, at, count)
SELECT environment_id, name, every_ms, recent.at - recent.at % every_ms, sum(recent.count)::bigint
FROM (SELECT environment_id, relay_name AS name, at, count FROM recent_request WHERE outcome = 'refused'
  UNION ALL SELECT environment_id, ''::text, at, count FROM recent_request WHERE outcome = 'refused') AS recent
CROSS JOIN (SELECT 60000 AS every_ms UNION ALL SELECT 3600000) AS width
GROUP BY environment_id, name, every_ms, recent.at - recent.at % every_ms;
