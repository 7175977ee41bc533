-- Events that came along with relay move before this had no block, so that no list told of them.
INSERT OR IGNORE INTO event_block (of_name, block) SELECT DISTINCT name_key, seq >> 11 FROM event INDEXED BY event_of_relay;
