-- A write can decide by what its process remembers of its environment, without reading it, and have the server check that the memory is right. These
-- functions raise a serialization failure if it is not, so that the write runs again and reads.

-- Checks that events of this time or later need no row in clock_rollback.
CREATE FUNCTION expect_event_time(at_ms bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1) > at_ms + (SELECT ms FROM event_time_step)
  THEN RAISE serialization_failure USING MESSAGE = 'The newest event is newer.';
  END IF;
END $$;

-- Checks that no event has one of these deduplication keys, which commas separate.
CREATE FUNCTION expect_new_keys(hashes text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM event WHERE dedupe_hash = ANY(string_to_array(hashes, ',')::bytea[]))
  THEN RAISE serialization_failure USING MESSAGE = 'An event with this key is stored.';
  END IF;
END $$;

-- Begins such a write. Takes the locks of the environment in the order of all writers, and lets the commit return before it is on the disk. Checks that
-- the last writer of the environment is this process, and its last commit there this one, and that no process wrote everything since. Checks the time
-- of events if it is not null. Returns the microseconds of the wait for the lock of everything and for that of the environment, with a comma between
-- them.
CREATE FUNCTION begin_expected(writer_lock integer, environment integer, own_node text, turn_node text, turn_number bigint, own_writer text,
  own_number bigint, event_at_ms bigint)
RETURNS text LANGUAGE plpgsql AS $$ DECLARE
  asked timestamptz := clock_timestamp();
  shared timestamptz;
  held timestamptz;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock_shared(writer_lock);
  shared := clock_timestamp();
  PERFORM pg_advisory_xact_lock(writer_lock, environment);
  held := clock_timestamp();
  IF NOT EXISTS (SELECT 1 FROM writer_turn, writer_scope, writer_commit
    WHERE writer_turn.node = turn_node AND writer_turn.number = turn_number AND scope = environment AND writer_scope.node = own_node
      AND connection = own_writer AND writer_commit.number >= own_number)
  THEN RAISE serialization_failure USING MESSAGE = 'Another process wrote the environment.';
  END IF;
  PERFORM expect_event_time(event_at_ms) WHERE event_at_ms IS NOT NULL;
  RETURN (extract(epoch FROM shared - asked) * 1000000)::bigint || ',' || (extract(epoch FROM held - shared) * 1000000)::bigint;
END $$;
