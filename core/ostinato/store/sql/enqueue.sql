-- The way in. These run on the caller's own connection, through whatever driver that is, so every parameter is a
-- text, an integer or a list of them, and says its type by cast(): drivers disagree on the rest.

-- name: enqueue
select id, created
from ostinato.enqueue(
    job_type => cast(:job_type as text), payload => cast(cast(:payload as text) as jsonb),
    namespace => cast(:namespace as text), queue => cast(:queue as text), priority => cast(:priority as integer),
    run_at => cast(cast(:run_at as text) as timestamptz), delay => cast(cast(:delay as text) as interval),
    dedup_key => cast(:dedup_key as text), dedup => cast(:dedup as text),
    idempotency_key => cast(:idempotency_key as text), max_attempts => cast(:max_attempts as integer),
    timeout => cast(cast(:timeout as text) as interval), context => cast(cast(:context as text) as jsonb),
    job_version => cast(:job_version as integer), concurrency_key => cast(:concurrency_key as text),
    idempotency_ttl => cast(cast(:idempotency_ttl as text) as interval))

-- name: enqueue_plain
-- What the function does for a job without keys, without the cost of calling it: a third of the time. What is not
-- given has the table's default, and costs neither the driver nor the server anything.
insert into ostinato.jobs (
    namespace,                                                      -- if namespace
    queue,                                                          -- if queue
    priority,                                                       -- if priority
    run_at,                                                         -- if run_at
    max_attempts,                                                   -- if max_attempts
    timeout,                                                        -- if timeout
    context,                                                        -- if context
    job_version,                                                    -- if job_version
    concurrency_key,                                                -- if concurrency_key
    job_type, payload)
values (
    cast(:namespace as text),                                       -- if namespace
    cast(:queue as text),                                           -- if queue
    cast(:priority as integer),                                     -- if priority
    coalesce(cast(cast(:run_at as text) as timestamptz), now() + cast(cast(:delay as text) as interval)), -- if run_at
    cast(:max_attempts as integer),                                 -- if max_attempts
    cast(cast(:timeout as text) as interval),                       -- if timeout
    cast(cast(:context as text) as jsonb),                          -- if context
    cast(:job_version as integer),                                  -- if job_version
    cast(:concurrency_key as text),                                 -- if concurrency_key
    cast(:job_type as text), cast(cast(:payload as text) as jsonb))
returning id, true as created,
    case when run_at <= now() and ostinato.anyone_idle() then ostinato.wake(namespace, queue, priority) end

-- name: enqueue_many
-- Jobs without keys: one plain insert. Options that many jobs share come once, as a kind. The ids are the first one
-- counted on, which UUIDv7 allows: they keep the order of the jobs, and only the first costs random bytes.
with first as materialized (
    select left(id, 24) as head, cast(cast('x' || right(id, 12) as bit(48)) as bigint) & 140737488355327 as tail
    from (select cast(ostinato.uuidv7() as text) as id) as made
), kind as materialized (
    select number, coalesce(namespace, 'default') as namespace, coalesce(queue, 'default') as queue, job_type,
        coalesce(job_version, 1) as job_version, coalesce(priority, 0) as priority,
        coalesce(cast(run_at as timestamptz), now() + cast(delay as interval), now()) as run_at, max_attempts,
        cast(timeout as interval) as timeout, concurrency_key, cast(context as jsonb) as context
    from unnest(cast(:namespace as text[]), cast(:queue as text[]), cast(:job_type as text[]),
        cast(:job_version as integer[]), cast(:priority as integer[]), cast(:run_at as text[]), cast(:delay as text[]),
        cast(:max_attempts as integer[]), cast(:timeout as text[]), cast(:concurrency_key as text[]),
        cast(:context as text[])) with ordinality
        as kind (namespace, queue, job_type, job_version, priority, run_at, delay, max_attempts, timeout,
            concurrency_key, context, number)
), entered as (
    insert into ostinato.jobs (id, payload, namespace, queue, job_type, job_version, priority, run_at, max_attempts,
        timeout, concurrency_key, context)
    select cast(head || lpad(to_hex(tail + place), 12, '0') as uuid), cast(payload as jsonb), namespace, queue,
        job_type, job_version, priority, run_at, max_attempts, timeout, concurrency_key, context
    from first, unnest(cast(:kinds as integer[]), cast(:payloads as text[])) with ordinality
        as job (number, payload, place)
    join kind using (number)
    returning id
), woken as (
    select ostinato.wake(namespace, queue, cast(priority as smallint))
    from (select distinct namespace, queue, priority from kind where run_at <= now() and ostinato.anyone_idle()) as line
)
select id, true as created from entered where (select count(*) from woken) >= 0 order by id

-- name: enqueue_each
-- Jobs with keys, one by one in one statement, in the order of their keys: two callers with the same keys then wait for
-- each other instead of dying of each other. Only where one's idempotency keys sort one way and its dedup keys the
-- other way, the server may have to end one of them as a deadlock, with nothing written.
select entered.id, entered.created
from (
    select * from unnest(cast(:namespace as text[]), cast(:queue as text[]), cast(:job_type as text[]),
    cast(:job_version as integer[]), cast(:payloads as text[]), cast(:priority as integer[]),
    cast(:run_at as text[]), cast(:delay as text[]), cast(:max_attempts as integer[]), cast(:timeout as text[]),
    cast(:concurrency_key as text[]), cast(:context as text[]), cast(:dedup_key as text[]), cast(:dedup as text[]),
    cast(:idempotency_key as text[]), cast(:idempotency_ttl as text[])) with ordinality
    as job (namespace, queue, job_type, job_version, payload, priority, run_at, delay, max_attempts, timeout,
        concurrency_key, context, dedup_key, dedup, idempotency_key, idempotency_ttl, place)
    order by coalesce(namespace, 'default'), job_type, idempotency_key, dedup_key, place
    offset 0
) as job
cross join lateral ostinato.enqueue(
    job_type => job.job_type, payload => cast(job.payload as jsonb), namespace => job.namespace, queue => job.queue,
    priority => job.priority, run_at => cast(job.run_at as timestamptz), delay => cast(job.delay as interval),
    dedup_key => job.dedup_key, dedup => job.dedup, idempotency_key => job.idempotency_key,
    max_attempts => job.max_attempts, timeout => cast(job.timeout as interval),
    context => cast(job.context as jsonb), job_version => job.job_version, concurrency_key => job.concurrency_key,
    idempotency_ttl => cast(job.idempotency_ttl as interval)) as entered
order by job.place
