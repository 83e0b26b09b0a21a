-- Workers and what they serve.

-- name: register_worker
insert into ostinato.workers (namespace, pool, pod, queues, job_types, limited, concurrency, info, lease_expires_at)
values (:namespace, :pool, :pod, :queues, :job_types, :limited, :concurrency, :info::text::jsonb,
    now() + :lease::interval)
returning id

-- name: register_job_types
-- Sorted, so that two workers that start at once lock the rows in one order.
insert into ostinato.job_types as known
    (namespace, job_type, job_version, queue, max_attempts, timeout, payload_schema)
select :namespace, job_type, job_version, queue, max_attempts, timeout, payload_schema::jsonb
from unnest(:types::text[], :versions::integer[], :queues::text[], :max_attempts::smallint[], :timeouts::interval[],
    :schemas::text[]) as served (job_type, job_version, queue, max_attempts, timeout, payload_schema)
order by job_type, job_version
on conflict (namespace, job_type, job_version) do update
set queue = excluded.queue, max_attempts = excluded.max_attempts, timeout = excluded.timeout,
    payload_schema = excluded.payload_schema, updated_at = now()
where (known.queue, known.max_attempts, known.timeout, known.payload_schema)
    is distinct from (excluded.queue, excluded.max_attempts, excluded.timeout, excluded.payload_schema)

-- name: register_limits
-- A bucket starts full. The last worker to say so sets the limit for all, and it holds while anyone live says so.
with said as materialized (
    select job_type, max_running, rate, burst
    from unnest(:types::text[], :max_running::smallint[], :rates::float8[], :bursts::float8[])
        as limited (job_type, max_running, rate, burst)
    order by job_type
), slots as (
    insert into ostinato.slots (namespace, job_type, slot)
    select :namespace, job_type, slot from said cross join lateral generate_series(1, max_running) as slot
    order by job_type, slot
    on conflict do nothing
)
insert into ostinato.limits as known (namespace, job_type, max_running, rate, burst, tokens)
select :namespace, job_type, max_running, rate, burst, coalesce(burst, 0) from said
on conflict (namespace, job_type) do update
set max_running = excluded.max_running, rate = excluded.rate, burst = excluded.burst,
    tokens = least(known.tokens, coalesce(excluded.burst, 0))
where (known.max_running, known.rate, known.burst)
    is distinct from (excluded.max_running, excluded.rate, excluded.burst)

-- name: renew_worker
-- Nothing comes back if the worker was declared dead: then it holds nothing any more.
update ostinato.workers set lease_expires_at = now() + :lease::interval
where id = :id and ended_at is null
    and (not idle or ostinato.will_be_idle(now() + :lease::interval) is not null)
returning draining_at is not null as draining, array(
    select job_type from ostinato.limits
    where limits.namespace = workers.namespace and job_type = any(
        select regexp_replace(served, '@.*', '') from unnest(workers.job_types) as served)) as limited, array(
    select jobs.id from ostinato.jobs
    where jobs.worker_id = :id and jobs.state = 'running' and jobs.cancel_requested_at is not null) as cancelled

-- name: mark_idle
update ostinato.workers set idle = :idle
where id = :id and idle is distinct from :idle
    and (not :idle or ostinato.will_be_idle(lease_expires_at) is not null)

-- name: drain_workers
update ostinato.workers set draining_at = coalesce(draining_at, now())
where id = any(:ids::uuid[]) and ended_at is null
returning id

-- name: retire_workers
-- By its own word at shutdown, or by whoever saw its pod die. What it still held is recovered at once.
update ostinato.workers set ended_at = now(), idle = false
where id = any(:ids::uuid[]) and ended_at is null
returning id

-- name: expire_workers
-- The row lock decides between this and a renewal that comes at the same moment: whoever is second sees the first.
update ostinato.workers set ended_at = now(), idle = false
where ended_at is null and lease_expires_at <= now()
returning id

-- name: list_workers
select id, namespace, pool, pod, queues, job_types, concurrency, info::text, started_at, lease_expires_at,
    draining_at, ended_at, (select count(*) from ostinato.jobs where worker_id = workers.id and state = 'running') as running
from ostinato.workers
where ended_at is null
    and namespace = :namespace                  -- if namespace
    and pool = :pool                            -- if pool
order by started_at, id

-- name: get_worker
-- Also one that has ended: somebody asks who ran a job.
select id, namespace, pool, pod, queues, job_types, concurrency, info::text, started_at, lease_expires_at,
    draining_at, ended_at, (select count(*) from ostinato.jobs where worker_id = workers.id and state = 'running') as running
from ostinato.workers
where id = :id

-- name: find_claims
select id, lease from ostinato.jobs where worker_id = :id and state = 'running'

-- name: find_max_attempts
select max_attempts from ostinato.job_types
where namespace = :namespace and job_type = :job_type and job_version = :job_version
