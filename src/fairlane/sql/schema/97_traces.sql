-- The trace that a job was enqueued in: a W3C traceparent and, after a space, a tracestate. A column
-- and no table: a job without one pays a bit in the row's header for it.
alter type fairlane.request add attribute trace text;

alter table fairlane.job         add column trace text;
alter table fairlane.dead_letter add column trace text;
alter table fairlane.history     add column trace text;
