-- The numbers of events. Those of an environment are drawn under its lock, so they rise in the order of its commits. A number that is drawn and not
-- used stays unused.
CREATE SEQUENCE event_number;
SELECT setval('event_number', last) FROM (
  SELECT greatest(event_last.seq, (SELECT max(seq) FROM event)) AS last FROM event_last) AS used WHERE last > 0;

-- Returns numbers for new events, rising and with commas between them. A node of an earlier version, and SQL, store the largest number plus one
-- without the sequence. All that a transaction's commits can see is stored, so numbers up to there are passed over.
CREATE FUNCTION draw_event_numbers(wanted bigint) RETURNS text LANGUAGE plpgsql AS $$ DECLARE
  stored bigint := (SELECT greatest(event_last.seq, (SELECT max(seq) FROM event)) FROM event_last);
  number bigint := nextval('event_number');
  drawn text;
BEGIN
  WHILE number <= stored LOOP
    -- One transaction at a time. Another one can draw meanwhile, so setval stays far behind the stored numbers, and nextval does the rest.
    PERFORM 1 FROM event_last FOR UPDATE;
    PERFORM setval('event_number', stored - 10000) FROM event_number WHERE last_value < stored - 20000;
    PERFORM nextval('event_number') FROM event_number, generate_series(last_value, stored - 1);
    number := nextval('event_number');
  END LOOP;
  drawn := number::text;
  FOR _ IN 2..wanted LOOP
    drawn := drawn || ',' || nextval('event_number');
  END LOOP;
  RETURN drawn;
END $$;

-- An event has the time of its arrival, and gets its number after a wait for the turn of its environment, which ends within a minute.
CREATE VIEW event_time_step AS SELECT 60000::bigint AS ms;
