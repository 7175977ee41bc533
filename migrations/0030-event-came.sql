-- How an event came that did not come by its relay's own trigger: 'import' of what a provider never delivered. NULL: by its trigger.
ALTER TABLE event ADD COLUMN came_by TEXT;
