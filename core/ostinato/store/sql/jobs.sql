-- Looking at jobs, in whichever room they are.

-- name: get_job
select id, namespace, queue, job_type, job_version, state, priority, run_at, attempt, max_attempts, timeout, dedup_key,
    concurrency_key, worker_id, lease, error_code, error_message, schedule_id, cancel_requested_at, created_at,
    started_at, finished_at, payload::text, context::text, attempts::text, progress::text, output::text
from ostinato.all_jobs
where id = :id

-- name: list_jobs
-- Newest first. Ids are made in the order of time, so "created since" is a range of ids, and so is a page.
select id, namespace, queue, job_type, job_version, state, priority, run_at, attempt, max_attempts, timeout, dedup_key,
    concurrency_key, worker_id, lease, error_code, error_message, schedule_id, cancel_requested_at, created_at,
    started_at, finished_at, payload::text, context::text, attempts::text, progress::text, output::text
from ostinato.all_jobs
where true
    and id < :before                            -- if before
    and id >= ostinato.first_id(:since)         -- if since
    and id < ostinato.first_id(:until)          -- if until
    and namespace = :namespace                  -- if namespace
    and queue = :queue                          -- if queue
    and job_type = :job_type                    -- if job_type
    and state = any(:states::text[])            -- if states
    and error_code = :error_code                -- if error_code
    and worker_id = :worker_id                  -- if worker_id
    and schedule_id = :schedule_id              -- if schedule_id
    and context @> :context::text::jsonb        -- if context
order by id desc
limit :limit

-- name: list_dead_letters
select id
from ostinato.dead_letters
where true
    and id < :before                            -- if before
    and id >= ostinato.first_id(:since)         -- if since
    and id < ostinato.first_id(:until)          -- if until
    and namespace = :namespace                  -- if namespace
    and queue = :queue                          -- if queue
    and job_type = :job_type                    -- if job_type
    and error_code = :error_code                -- if error_code
    and worker_id = :worker_id                  -- if worker_id
    and schedule_id = :schedule_id              -- if schedule_id
    and context @> :context::text::jsonb        -- if context
order by id desc
limit :limit

-- name: count_jobs
select namespace, queue, state, count(*) as jobs,
    count(*) filter (where state <> 'running' and run_at <= now()) as ready,
    now() - min(run_at) filter (where state <> 'running' and run_at <= now()) as oldest_ready
from ostinato.jobs
where true
    and namespace = :namespace                  -- if namespace
    and queue = any(:queues::text[])            -- if queues
group by namespace, queue, state
union all
select namespace, queue, state, count(*), 0, null
from ostinato.dead_letters
where true
    and namespace = :namespace                  -- if namespace
    and queue = any(:queues::text[])            -- if queues
group by namespace, queue, state
order by namespace, queue, state

-- name: find_lanes
-- Hops from one priority to the next lower one in the index instead of reading every waiting job.
with recursive lane (queue, priority) as (
    select served.queue, (
        select priority from ostinato.jobs
        where namespace = :namespace and queue = served.queue and state in ('pending', 'retrying')
        order by priority desc limit 1)
    from unnest(:queues::text[]) as served (queue)
    union all
    select lane.queue, (
        select priority from ostinato.jobs
        where namespace = :namespace and queue = lane.queue and state in ('pending', 'retrying')
            and priority < lane.priority
        order by priority desc limit 1)
    from lane where lane.priority is not null
)
select queue, priority from lane where priority is not null

-- name: next_run_at
-- When the next waiting job of these lanes is due, and what time it is. What has long been due may be nobody's here.
select min(soonest.run_at) as run_at, clock_timestamp() as now
from unnest(:queues::text[], :priorities::smallint[]) as lane (queue, priority)
cross join lateral (
    select run_at from ostinato.jobs
    where namespace = :namespace and queue = lane.queue and priority = lane.priority and state in ('pending', 'retrying')
        and run_at > now() - interval '100 ms'
    order by run_at limit 1
) as soonest

-- name: progress
update ostinato.jobs set progress = :progress::text::jsonb
where id = :id and lease = :lease
returning id

-- name: emit
-- Fenced like every write to a running job.
insert into ostinato.job_events (job_id, attempt, event)
select id, :attempt, :event::text::jsonb from ostinato.jobs where id = :id and lease = :lease
returning job_id

-- name: list_events
select at, attempt, event::text from ostinato.job_events where job_id = :id order by at, id limit :limit
