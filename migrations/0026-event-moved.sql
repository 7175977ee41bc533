-- Every row has moved.
DROP TABLE event_before;
