-- Finished jobs whose retention is not over. From that moment on a job is gone for every reader, though
-- its row stays until its partition goes.
--
-- `case ... is not null` tells the planner what is so: this removes next to nothing. A plain condition
-- is taken to remove most, and lists are then sorted instead of read from their index.
create or replace view fairlane.ended as
select *
  from fairlane.history
 where case when finished_at + kept_days * interval '24 hours' > (select fairlane.clock()) then 1 end
         is not null;
