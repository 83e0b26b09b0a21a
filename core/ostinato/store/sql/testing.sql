-- What only tests do: `ostinato.testing`. Some of these run on the caller's own connection, through whatever driver that
-- is, so their parameters say their type by cast().

-- name: advance
-- As if so much time had passed: what waits, what is remembered and what is rationed is that much older. Nothing gets
-- older than 1970, which no run_at may be, nor reaches the end of what a timestamp can be.
with time as materialized (
    select cast(cast(:by as text) as interval) as passes, timestamptz '1970-01-01 00:00:00+00' as began
), shifted as (
    update ostinato.jobs
    set run_at = run_at - least(passes, run_at - began), created_at = created_at - least(passes, created_at - began)
    from time
    where state in ('pending', 'retrying')
    returning namespace, queue, priority, run_at
), forgotten as (
    update ostinato.idempotency_keys set expires_at = expires_at - least(passes, expires_at - began) from time
    returning 1
), refilled as (
    update ostinato.limits set refilled_at = refilled_at - least(passes, refilled_at - began) from time
    returning 1
), woken as (
    select ostinato.wake(namespace, queue, priority)
    from (select distinct namespace, queue, priority from shifted where run_at <= now() and ostinato.anyone_idle())
        as line
)
select (select count(*) from shifted where run_at <= now()) as due,
    (select count(*) from forgotten) + (select count(*) from refilled) + (select count(*) from woken) as others

-- name: until_next
-- How long until the next of these jobs is due, or until the rates of those that are due let them run: as many at once as
-- a bucket holds, else each would take a worker of its own. Null if none waits for its time.
with waiting as (
    select job_type, run_at
    from ostinato.jobs
    where state in ('pending', 'retrying') and namespace = :namespace and queue = any(:queues::text[])
        and case job_version when 1 then job_type = any(:types::text[])
            else job_type || '@' || job_version = any(:types::text[]) end
), held as (
    select job_type, count(*) as jobs from waiting where run_at <= now() group by job_type
), bucket as (
    select rate, least(burst, jobs) as wanted,
        least(burst, tokens + rate * extract(epoch from greatest(now() - refilled_at, interval '0'))) as tokens
    from ostinato.limits
    join held using (job_type)
    where namespace = :namespace and rate is not null
)
select least(
    (select min(run_at) - now() from waiting where run_at > now()),
    -- With a token at hand it is not the rate that they wait for.
    (select make_interval(secs => min((wanted - tokens) / rate)) from bucket where tokens < 1)
) as wait

-- name: create_database
-- A name is no parameter in these two: the server quotes it, and what it gives back is run.
select 'create database ' || quote_ident(:name::text) || coalesce(' template ' || quote_ident(:template::text), '')

-- name: drop_database
select 'drop database if exists ' || quote_ident(:name::text) || ' with (force)'
