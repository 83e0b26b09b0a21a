-- What `ostinato doctor` looks at: facts alone, judged by ostinato.health.

-- name: clock
-- Not now(), which is when the transaction began.
select clock_timestamp()

-- name: backend
select pg_backend_pid()

-- name: notify
select pg_notify(:channel, :payload)

-- name: look_at_server
select current_setting('server_version_num')::int as version,
    current_setting('autovacuum')::boolean as autovacuum,
    current_setting('track_counts')::boolean as track_counts,
    current_setting('jit')::boolean as jit,
    current_user::text as user,
    pg_is_in_recovery() as standby,
    current_setting('default_transaction_read_only')::boolean as read_only,
    pg_has_role('pg_read_all_stats', 'usage') as sees_all

-- name: look_at_tables
select stat.relname as name, n_live_tup as live, n_dead_tup as dead,
    greatest(last_vacuum, last_autovacuum) as vacuumed_at,
    coalesce(class.reloptions, '{}') && '{autovacuum_enabled=false,autovacuum_enabled=off,autovacuum_enabled=0}'::text[]
        as excluded
from pg_stat_user_tables as stat
join pg_class as class on class.oid = stat.relid
where stat.schemaname = 'ostinato' and stat.relname in ('jobs', 'workers', 'slots', 'dead_letters')
order by stat.relname

-- name: look_at_horizon
-- What keeps vacuum from removing dead rows of this database: a transaction of it, or of no database (a standby).
select 'transaction' as kind, pid::text as name, age(coalesce(backend_xmin, backend_xid))::bigint as transactions,
    clock_timestamp() - xact_start as lasts,
    concat_ws(', ', nullif(application_name, ''), usename, host(client_addr), state) as who,
    left(regexp_replace(query, '\s+', ' ', 'g'), 100) as query
from pg_stat_activity
where (backend_xmin is not null or backend_xid is not null) and pid <> pg_backend_pid()
    and (datname = current_database() or datname is null) and backend_type <> 'autovacuum worker'
union all
select 'prepared transaction', gid, age(transaction)::bigint, clock_timestamp() - prepared, owner, null
from pg_prepared_xacts
where database = current_database()
union all
select 'replication slot', slot_name, age(xmin)::bigint, null,
    concat_ws(', ', slot_type, case when active then 'active' else 'not active' end), null
from pg_replication_slots
where xmin is not null
order by transactions desc

-- name: look_at_partitions
-- How many whole days after today have a partition, counted without a gap.
select coalesce(min(day.ahead) - 1, :most::int)
from generate_series(1, :most::int) as day (ahead)
where not exists (
    select from pg_inherits
    join pg_class as part on part.oid = inhrelid
    where inhparent = to_regclass('ostinato.job_history')
        and part.relname = 'job_history_' || to_char((now() at time zone 'UTC')::date + day.ahead, 'YYYYMMDD'))

-- name: look_at_queues
-- The oldest job that waits for a worker, per queue, and how many live workers serve that queue.
select namespace, queue, count(*) as ready, now() - min(run_at) as oldest, (
    select count(*) from ostinato.workers
    where workers.namespace = waiting.namespace and waiting.queue = any(workers.queues)
        and ended_at is null and draining_at is null and lease_expires_at > now()) as workers
from ostinato.jobs as waiting
where state in ('pending', 'retrying') and run_at <= now()
group by namespace, queue
order by oldest desc
limit :limit

-- name: look_at_lost
-- Dead workers that nobody has declared dead, and jobs that nobody has taken back from dead workers.
select (select count(*) from ostinato.workers where ended_at is null and lease_expires_at < now()) as workers,
    (select now() - min(lease_expires_at) from ostinato.workers where ended_at is null) as silent,
    (select count(*) from ostinato.jobs where state = 'running' and not exists (
        select from ostinato.workers where workers.id = jobs.worker_id and ended_at is null)) as jobs
