-- A schedule's memory is one mark, relay.active_since: every period that began until then is settled. What was settled before it stands
-- as spans, of which the present one's end counts; a span that lies ahead is of a clock that was set back, and the events' keys know it.

UPDATE relay SET active_since = max(active_since, coalesce((
  SELECT max(json_extract(span.value, '$[1]'))
  FROM schedule_cursor, json_each(schedule_cursor.settled) AS span
  WHERE schedule_cursor.relay_id = relay.id AND json_extract(span.value, '$[1]') <= unixepoch() * 1000), 0));

DROP TABLE schedule_cursor;
