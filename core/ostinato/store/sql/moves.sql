-- The moves of a job, one statement each: see `ostinato.lifecycle`.
--
-- Fences: (id, lease) names one claim of one job. Where there are many, "id = any(ids)" stands beside the join, since
-- it keeps the primary-key plan, where the join alone falls into a sequential scan. None of these says
-- state = 'running' where a lease does: that would invite the planner onto a small partial index, whose dead entries
-- nothing can remove while an old transaction pins the horizon.

-- let carried: id, run_at, created_at, timeout, schedule_id, stacked, job_version, priority, attempt,
--   max_attempts, namespace, queue, job_type, payload, dedup_key, concurrency_key, context, progress

-- name: claim
-- Lanes come highest priority first. The lateral scans run lane by lane and stop as soon as enough rows are
-- locked, so nothing is locked that is not taken, and later lanes are not even looked at.
with ready as materialized (
    select waiting.place
    from unnest(:queues::text[], :priorities::smallint[], :marks::timestamptz[], :mark_ids::uuid[]) with ordinality
        as lane (queue, priority, mark, mark_id, turn)
    cross join lateral (
        select job.ctid as place
        from ostinato.jobs as job
        where job.state in ('pending', 'retrying')
            and job.namespace = :namespace and job.queue = lane.queue and job.priority = lane.priority
            and (job.run_at, job.id) >= (lane.mark, lane.mark_id) and job.run_at <= now()
            and case job.job_version when 1 then job.job_type = any(:types::text[])
                else job.job_type || '@' || job.job_version = any(:types::text[]) end
            and (job.concurrency_key is null or not exists (
                select from ostinato.jobs as ahead
                where ahead.namespace = :namespace and ahead.concurrency_key = job.concurrency_key
                    and (ahead.state = 'running' or (
                        ahead.run_at <= now() and (ahead.priority > job.priority or (
                            ahead.priority = job.priority and (ahead.run_at, ahead.id) < (job.run_at, job.id)))))))
        order by job.run_at, job.id
        limit :limit
        for update skip locked
    ) as waiting
    -- A worker that was declared dead, or told to drain, gets nothing.
    where exists (
        select from ostinato.workers
        where id = :worker_id and ended_at is null and draining_at is null and ostinato.need_not_be_durable(:alone))
    limit :limit
)
update ostinato.jobs
set state = 'running', attempt = least(attempt + 1, 32767), lease = ostinato.new_lease(),
    worker_id = :worker_id, started_at = now(), stacked = dedup_key is not null
where ctid = any(array(select place from ready))
returning id, lease, queue, job_type, job_version, payload::text, priority, run_at, attempt, max_attempts, timeout,
    context::text, progress::text, schedule_id

-- name: claim_limited
-- The same for a worker that serves limited types: those have lanes of their own (`solo`), which take no more than
-- there are free slots and tokens. A slot or bucket that another claim holds is skipped: it counts as taken.
with alive as materialized (
    select from ostinato.workers
    where id = :worker_id and ended_at is null and draining_at is null and ostinato.need_not_be_durable(:alone)
), rule as materialized (
    select job_type, max_running, rate from ostinato.limits
    where namespace = :namespace and job_type = any(:limited::text[])
), bucket as materialized (
    select job_type, least(burst, tokens + rate * extract(epoch from greatest(now() - refilled_at, interval '0'))) as tokens
    from ostinato.limits
    where namespace = :namespace and job_type = any(:limited::text[]) and rate is not null
    for update skip locked
), free as materialized (
    -- No more of each type than could be taken: other claims want some too.
    select taken.job_type, taken.slot
    from rule
    cross join lateral (
        select job_type, slot from ostinato.slots
        where namespace = :namespace and job_type = rule.job_type and job_id is null and slot <= rule.max_running
        limit :limit
        for update skip locked
    ) as taken
), numbered as (
    select job_type, slot, row_number() over (partition by job_type order by slot) as turn from free
), budget as materialized (
    select job_type, max_running is not null as slotted, least(:limit::integer,
        case when rate is not null then
            coalesce((select floor(tokens) from bucket where bucket.job_type = rule.job_type), 0) end,
        case when max_running is not null then
            (select count(*) from free where free.job_type = rule.job_type) end,
        -- Only after a limit was lowered: slots above it may still be held.
        case when max_running is not null then
            greatest(0, max_running - (
                select count(*) from ostinato.slots as held
                where held.namespace = :namespace and held.job_type = rule.job_type and held.job_id is not null)) end
        )::bigint as starts
    from rule
), ready as materialized (
    select waiting.id, lane.solo, lane.place
    from unnest(:queues::text[], :priorities::smallint[], :marks::timestamptz[], :mark_ids::uuid[], :solos::text[])
        with ordinality as lane (queue, priority, mark, mark_id, solo, place)
    cross join lateral (
        select job.id
        from ostinato.jobs as job
        where job.state in ('pending', 'retrying')
            and job.namespace = :namespace and job.queue = lane.queue and job.priority = lane.priority
            and (job.run_at, job.id) >= (lane.mark, lane.mark_id) and job.run_at <= now()
            and case when lane.solo is null then job.job_type <> all(:limited::text[]) else job.job_type = lane.solo end
            and case job.job_version when 1 then job.job_type = any(:types::text[])
                else job.job_type || '@' || job.job_version = any(:types::text[]) end
            and (job.concurrency_key is null or not exists (
                select from ostinato.jobs as ahead
                where ahead.namespace = :namespace and ahead.concurrency_key = job.concurrency_key
                    and (ahead.state = 'running' or (
                        ahead.run_at <= now() and (ahead.priority > job.priority or (
                            ahead.priority = job.priority and (ahead.run_at, ahead.id) < (job.run_at, job.id)))))))
        order by job.run_at, job.id
        limit case when lane.solo is null then :limit
            else coalesce((select starts from budget where budget.job_type = lane.solo), 0) end
        for update skip locked
    ) as waiting
    where exists (select from alive)
    limit :limit
), placed as (
    select ready.id, ready.solo, row_number() over (partition by ready.solo order by ready.place) as turn from ready
), admitted as materialized (
    select placed.id, placed.solo, numbered.slot
    from placed
    left join budget on budget.job_type = placed.solo
    left join numbered on numbered.job_type = placed.solo and numbered.turn = placed.turn and budget.slotted
    where placed.solo is null or placed.turn <= budget.starts
), spent as (
    update ostinato.limits
    set tokens = bucket.tokens - (select count(*) from admitted where admitted.solo = bucket.job_type),
        refilled_at = greatest(now(), limits.refilled_at)
    from bucket
    where limits.namespace = :namespace and limits.job_type = bucket.job_type
), held as (
    update ostinato.slots set job_id = admitted.id
    from admitted
    where slots.namespace = :namespace and slots.job_type = admitted.solo and slots.slot = admitted.slot
)
update ostinato.jobs
set state = 'running', attempt = least(attempt + 1, 32767), lease = ostinato.new_lease(),
    worker_id = :worker_id, started_at = now(), slot = admitted.slot, stacked = dedup_key is not null
from admitted
where jobs.id = admitted.id
returning jobs.id, lease, queue, job_type, job_version, payload::text, priority, run_at, attempt, max_attempts, timeout,
    context::text, progress::text, schedule_id

-- name: complete
-- Its end by the wall clock: a handler's own transaction, in which this may run, began when the attempt did.
-- Nothing is returned: the number of rows tells whether all were still held, and as a rule they were.
with done as (
    delete from ostinato.jobs
    using unnest(:ids::uuid[], :leases::bigint[], :outputs::text[]) as given (id, lease, output)
    where jobs.id = any(:ids::uuid[]) and jobs.id = given.id and jobs.lease = given.lease
    returning jobs.*, given.output as given
)
insert into ostinato.job_history (<carried>, state, lease, worker_id, started_at, finished_at, attempts, output)
select <carried>, 'completed', lease, worker_id, started_at, statement_timestamp(), attempts, given::jsonb
from done

-- name: complete_one
-- The same for a job that is completed in the transaction that did its work. It fails if the claim is lost.
with done as (
    delete from ostinato.jobs where id = :id::uuid and lease = :lease::bigint returning *
), recorded as (
    insert into ostinato.job_history (<carried>, state, lease, worker_id, started_at, finished_at, attempts, output)
    select <carried>, 'completed', lease, worker_id, started_at, statement_timestamp(), attempts, :output::text::jsonb
    from done
    returning id
)
select case when count(*) = 0 then ostinato.lease_lost(:id, :lease) end from recorded

-- name: find_lost
-- Which of these claims did not end as completed.
select given.id
from unnest(:ids::uuid[], :leases::bigint[]) as given (id, lease)
where not exists (
    select from ostinato.job_history as done
    where done.id = given.id and done.lease = given.lease and done.state = 'completed')

-- name: retry
update ostinato.jobs
set state = 'retrying', run_at = now() + :delay::interval, lease = null, worker_id = null, slot = null,
    attempts = ostinato.with_attempt(attempts, attempt, worker_id, started_at, :code, :message),
    error_code = :code, error_message = :message
where id = :id and lease = :lease and cancel_requested_at is null
returning id, case when run_at <= now() and ostinato.anyone_idle() then ostinato.wake(namespace, queue, priority) end

-- name: snooze
update ostinato.jobs
set state = 'pending', run_at = coalesce(:run_at, now() + :delay::interval), attempt = attempt - 1,
    lease = null, worker_id = null, slot = null
where id = :id and lease = :lease and cancel_requested_at is null
returning id, case when run_at <= now() and ostinato.anyone_idle() then ostinato.wake(namespace, queue, priority) end

-- name: release
with released as (
    update ostinato.jobs
    set state = 'pending', attempt = attempt - 1, lease = null, worker_id = null, slot = null
    from unnest(:ids::uuid[], :leases::bigint[]) as given (id, lease)
    where jobs.id = any(:ids::uuid[]) and jobs.id = given.id and jobs.lease = given.lease and cancel_requested_at is null
    returning jobs.id, jobs.namespace, jobs.queue, jobs.priority
), woken as (
    select ostinato.wake(namespace, queue, priority)
    from (select distinct namespace, queue, priority from released where ostinato.anyone_idle()) as line
)
select id from released where (select count(*) from woken) >= 0

-- name: dead_letter
with buried as (
    delete from ostinato.jobs where id = :id and lease = :lease and cancel_requested_at is null returning *
)
insert into ostinato.dead_letters
    (<carried>, state, worker_id, started_at, finished_at, attempts, error_code, error_message)
select <carried>, 'dead_lettered', worker_id, started_at, now(),
    ostinato.with_attempt(attempts, attempt, worker_id, started_at, :code, :message), :code, :message
from buried
returning id

-- name: stop
-- The end of an attempt that a person asked to stop, whatever else its worker wanted to do with it.
with stopped as (
    delete from ostinato.jobs
    using unnest(:ids::uuid[], :leases::bigint[]) as given (id, lease)
    where jobs.id = any(:ids::uuid[]) and jobs.id = given.id and jobs.lease = given.lease
        and cancel_requested_at is not null
    returning jobs.*
)
insert into ostinato.job_history
    (<carried>, state, lease, worker_id, started_at, finished_at, cancel_requested_at, attempts, error_code, error_message)
select <carried>, 'cancelled', lease, worker_id, started_at, now(), cancel_requested_at, attempts,
    coalesce(:code, 'CANCELLED'), coalesce(:message, 'stopped while it ran, as asked')
from stopped
returning id

-- name: cancel
-- The lock first: if a claim or a completion is under way, what is decided is decided on what it leaves behind.
with target as materialized (
    select id, state, worker_id from ostinato.jobs where id = :id for update
), cancelled as (
    delete from ostinato.jobs using target where jobs.id = target.id and target.state <> 'running' returning jobs.*
), moved as (
    insert into ostinato.job_history
        (<carried>, state, started_at, finished_at, cancel_requested_at, attempts, error_code, error_message)
    select <carried>, 'cancelled', started_at, now(), now(), attempts, 'CANCELLED', coalesce(:reason, 'called off')
    from cancelled
    returning id
), asked as (
    update ostinato.jobs set cancel_requested_at = coalesce(jobs.cancel_requested_at, now())
    from target where jobs.id = target.id and target.state = 'running'
    returning jobs.id, jobs.worker_id
)
select 'cancelled' as outcome, null as notified from moved
union all
select 'asked', pg_notify('ostinato_cancel', worker_id || '/' || id)::text from asked

-- name: hasten
update ostinato.jobs set state = 'pending', run_at = least(run_at, now())
where id = :id and state in ('pending', 'retrying')
returning id, ostinato.wake(namespace, queue, priority)

-- name: redrive
-- Always possible: where another live job has taken the dedup key, this one is stacked beside it.
with chosen as (
    delete from ostinato.dead_letters where id = any(:ids::uuid[]) returning *
), pending as (
    insert into ostinato.jobs
        (id, run_at, created_at, timeout, schedule_id, stacked, job_version, priority, attempt, max_attempts,
         namespace, queue, job_type, payload, dedup_key, concurrency_key, context, progress, attempts,
         error_code, error_message)
    select id, coalesce(:run_at, now() + :delay::interval, now()), created_at, timeout, schedule_id, true, job_version,
        priority, case when :reset::boolean then 0 else attempt end, max_attempts, namespace, queue, job_type, payload,
        dedup_key, concurrency_key, context, progress, attempts, error_code, error_message
    from chosen
    returning id, namespace, queue, priority, run_at
), woken as (
    select ostinato.wake(namespace, queue, priority)
    from (select distinct namespace, queue, priority from pending where run_at <= now()) as line
)
select id from pending where (select count(*) from woken) >= 0

-- name: recover
-- Jobs whose worker is no more: called off ones end, spent or poisonous ones are buried, the others go back.
with lost as materialized (
    select job.id, job.cancel_requested_at is not null as called_off,
        job.attempt >= coalesce(job.max_attempts, type.max_attempts, :max_attempts) as spent,
        -- Of the attempts since they were last counted from the start: a person may have begun them anew.
        1 + (select count(*) from jsonb_array_elements(job.attempts) with ordinality as failed (fact, place)
             where fact ->> 'code' = 'LEASE_EXPIRED'
                 and place > jsonb_array_length(job.attempts) - (job.attempt - 1)) >= :poison as poisonous
    from ostinato.jobs as job
    left join ostinato.job_types as type using (namespace, job_type, job_version)
    where job.state = 'running'
        and not exists (select from ostinato.workers where workers.id = job.worker_id and workers.ended_at is null)
    limit :limit
    for update of job skip locked
), stopped as (
    delete from ostinato.jobs using lost where jobs.id = lost.id and lost.called_off returning jobs.*
), cancelled as (
    insert into ostinato.job_history (<carried>, state, lease, worker_id, started_at, finished_at,
        cancel_requested_at, attempts, error_code, error_message)
    select <carried>, 'cancelled', lease, worker_id, started_at, now(), cancel_requested_at, attempts,
        'CANCELLED', 'its worker died after it was asked to stop'
    from stopped
    returning id
), doomed as (
    delete from ostinato.jobs using lost
    where jobs.id = lost.id and not lost.called_off and (lost.spent or lost.poisonous)
    returning jobs.*, lost.spent
), buried as (
    insert into ostinato.dead_letters
        (<carried>, state, worker_id, started_at, finished_at, attempts, error_code, error_message)
    select <carried>, 'dead_lettered', worker_id, started_at, now(),
        ostinato.with_attempt(attempts, attempt, worker_id, started_at, 'LEASE_EXPIRED', :message),
        case when spent then 'LEASE_EXPIRED' else 'POISON' end, :message
    from doomed
    returning id
), returned as (
    update ostinato.jobs as job
    set state = 'pending', run_at = now(), lease = null, worker_id = null, slot = null,
        attempts = ostinato.with_attempt(attempts, attempt, worker_id, started_at, 'LEASE_EXPIRED', :message),
        error_code = 'LEASE_EXPIRED', error_message = :message
    from lost
    where job.id = lost.id and not lost.called_off and not lost.spent and not lost.poisonous
    returning job.id, job.namespace, job.queue, job.priority
), woken as (
    select ostinato.wake(namespace, queue, priority)
    from (select distinct namespace, queue, priority from returned) as line
)
select (select count(*) from returned) as returned, (select count(*) from buried) as buried,
    (select count(*) from cancelled) as cancelled, (select count(*) from woken) as woken

-- name: bury_unserved
-- Jobs that are due for longer than the grace, of a type that nobody has known in all that time, though somebody served
-- their queue at its beginning and does now. Where nobody does, workers are missing and not a handler: then they wait.
-- Who stops working while this runs may be the last who knew a type: he was there within the grace, so it is served.
-- By lanes, as claims go, so that only what is long due is read.
with recursive recent as materialized (
    select namespace, queues, job_types, started_at <= now() - :grace::interval as early,
        ended_at is null and draining_at is null as serving
    from ostinato.workers
    where ended_at is null or ended_at > now() - :grace::interval
), known as materialized (
    select distinct namespace, served from recent cross join unnest(job_types) as served
), line as materialized (
    select namespace, queue
    from recent cross join unnest(queues) as queue
    group by namespace, queue
    having bool_or(early) and bool_or(serving)
), lane (namespace, queue, priority) as (
    select namespace, queue, (
        select priority from ostinato.jobs
        where namespace = line.namespace and queue = line.queue and state in ('pending', 'retrying')
        order by priority desc limit 1)
    from line
    union all
    select namespace, queue, (
        select priority from ostinato.jobs
        where namespace = lane.namespace and queue = lane.queue and state in ('pending', 'retrying')
            and priority < lane.priority
        order by priority desc limit 1)
    from lane where priority is not null
), unserved as materialized (
    select waiting.place
    from lane
    cross join lateral (
        select job.ctid as place
        from ostinato.jobs as job
        where job.state in ('pending', 'retrying') and job.namespace = lane.namespace and job.queue = lane.queue
            and job.priority = lane.priority and job.run_at <= now() - :grace::interval
            and not exists (
                select from known
                where known.namespace = job.namespace and known.served = case job.job_version
                    when 1 then job.job_type else job.job_type || '@' || job.job_version end)
        order by job.run_at, job.id
        limit :limit
        for update skip locked
    ) as waiting
    limit :limit
), doomed as (
    delete from ostinato.jobs where ctid = any(array(select place from unserved)) returning *
), buried as (
    insert into ostinato.dead_letters
        (<carried>, state, started_at, finished_at, attempts, error_code, error_message)
    select <carried>, 'dead_lettered', started_at, now(), attempts, 'NO_HANDLER',
        format('no worker of namespace %s has known version %s of type %s since it was due', namespace, job_version, job_type)
    from doomed
    returning namespace, queue, job_type, job_version
)
select namespace, queue, job_type, job_version, count(*) as jobs
from buried
group by namespace, queue, job_type, job_version
order by namespace, queue, job_type, job_version
