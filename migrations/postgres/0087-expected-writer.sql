-- A write can decide by what its process remembers of its environment, without reading it, and have the server check that the memory is right. These
-- functions raise a serialization failure if it is not, so that the write runs again and reads.

-- Checks that the last writer of the environment is this process, and its last commit there this one, and that no process wrote everything since.
CREATE FUNCTION expect_last_writer(environment bigint, own_node text, turn_node text, turn_number bigint, own_writer text, own_number bigint)
RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM writer_turn, writer_scope, writer_commit
    WHERE writer_turn.node = turn_node AND writer_turn.number = turn_number AND scope = environment AND writer_scope.node = own_node
      AND connection = own_writer AND writer_commit.number >= own_number)
  THEN RAISE serialization_failure USING MESSAGE = 'Another process wrote the environment.';
  END IF;
END $$;

-- Checks that no event has one of these deduplication keys, which commas separate.
CREATE FUNCTION expect_new_keys(hashes text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM event WHERE dedupe_hash = ANY(string_to_array(hashes, ',')::bytea[]))
  THEN RAISE serialization_failure USING MESSAGE = 'An event with this key is stored.';
  END IF;
END $$;

-- Checks that events of this time need no row in clock_rollback.
CREATE FUNCTION expect_event_time(at_ms bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT created_at FROM event ORDER BY seq DESC LIMIT 1) > at_ms + (SELECT ms FROM event_time_step)
  THEN RAISE serialization_failure USING MESSAGE = 'The newest event is newer.';
  END IF;
END $$;
