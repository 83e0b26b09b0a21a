-- Making room: partitions ahead of time, and what is old enough to go.

-- name: make_partitions
select ostinato.make_partitions(:days)

-- name: old_partitions
-- Detaching concurrently lets readers go on; it cannot run inside a function, so the commands are handed out.
-- Days are compared as the text in the names: the planner may ask of any table, also of one whose name is no day.
select part.relname as name,
    format('alter table ostinato.job_history detach partition ostinato.%I %s', part.relname,
        case when inhdetachpending then 'finalize' else 'concurrently' end) as detach,
    format('drop table if exists ostinato.%I', part.relname) as drop
from pg_inherits
join pg_class as part on part.oid = inhrelid
where inhparent = 'ostinato.job_history'::regclass
    and part.relname ~ '^job_history_[0-9]{8}$'
    and (inhdetachpending
        or part.relname < 'job_history_' || to_char((now() - :keep::interval) at time zone 'UTC', 'YYYYMMDD'))
-- There can be one pending detach, and it must be ended before the next can begin.
order by inhdetachpending desc, part.relname

-- name: detached_partitions
-- What an interrupted prune left behind: detached, but not dropped.
select format('drop table if exists ostinato.%I', relname) as drop
from pg_class
where relnamespace = 'ostinato'::regnamespace and relkind = 'r' and not relispartition
    and relname ~ '^job_history_[0-9]{8}$'
    and relname < 'job_history_' || to_char((now() - :keep::interval) at time zone 'UTC', 'YYYYMMDD')

-- name: prune_idempotency_keys
delete from ostinato.idempotency_keys
where ctid = any(array(
    select ctid from ostinato.idempotency_keys where expires_at <= now() order by expires_at limit :limit
    for update skip locked))

-- name: prune_workers
delete from ostinato.workers
where id = any(array(select id from ostinato.workers where ended_at <= now() - :keep::interval limit :limit))
    and not exists (select from ostinato.jobs where worker_id = workers.id and state = 'running')

-- name: prune_dead_letters
delete from ostinato.dead_letters
where id = any(array(
    select id from ostinato.dead_letters where finished_at <= now() - :keep::interval order by finished_at limit :limit
    for update skip locked))

-- name: prune_limits
-- Slots of a type that is no longer limited are let go by the jobs that hold them, and go with the next look.
with gone as (
    delete from ostinato.limits
    where not exists (
        select from ostinato.workers
        where workers.namespace = limits.namespace and limits.job_type = any(limited) and ended_at is null)
    returning namespace, job_type
)
delete from ostinato.slots
where job_id is null and not exists (
    select from ostinato.workers
    where workers.namespace = slots.namespace and slots.job_type = any(limited) and ended_at is null)

-- name: prune_events
delete from ostinato.job_events
where id = any(array(select id from ostinato.job_events where at <= now() - :keep::interval order by at limit :limit))
