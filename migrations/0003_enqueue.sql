-- The one door in: callable in any transaction, from any language.

create table ostinato.idempotency_keys (
    namespace  text collate "C" not null,
    job_type   text collate "C" not null,
    key        ostinato.key not null,
    job_id     uuid not null,
    expires_at timestamptz not null,
    primary key (namespace, job_type, key)
);
create index idempotency_keys_expiry on ostinato.idempotency_keys (expires_at);

create function ostinato.refuse_argument(argument text, given text, rule text) returns void language plpgsql as $$
begin
    raise exception 'ostinato: % is %; %', argument, coalesce(quote_literal(given), 'null'), rule
        using errcode = 'invalid_parameter_value';
end
$$;

-- A null argument means its default.
create function ostinato.enqueue(
    job_type text, payload jsonb default '{}', namespace text default 'default', queue text default 'default',
    priority integer default 0, run_at timestamptz default null, delay interval default null,
    dedup_key text default null, dedup text default 'skip', idempotency_key text default null,
    max_attempts integer default null, timeout interval default null, context jsonb default null,
    job_version integer default 1, concurrency_key text default null, schedule_id uuid default null,
    idempotency_ttl interval default '1 day',
    out id uuid, out created boolean
) language plpgsql as $$
#variable_conflict use_column
declare
    a_type alias for $1;
    a_payload jsonb := coalesce($2, '{}');
    a_namespace text := coalesce($3, 'default');
    a_queue text := coalesce($4, 'default');
    a_priority integer := coalesce($5, 0);
    a_run_at timestamptz := coalesce($6, now() + $7, now());
    a_dedup_key alias for $8;
    a_dedup text := coalesce($9, 'skip');
    a_key alias for $10;
    a_max_attempts alias for $11;
    a_timeout alias for $12;
    a_context alias for $13;
    a_version integer := coalesce($14, 1);
    a_concurrency_key alias for $15;
    a_schedule_id alias for $16;
    new_id uuid := ostinato.uuidv7();
begin
    if a_type is null or a_type = '' then
        perform ostinato.refuse_argument('job_type', a_type, 'it must be given');
    elsif a_type !~ '^[A-Za-z0-9_][-_.:/A-Za-z0-9]{0,199}$' then
        -- No "@" above all: a worker says "type@2" for version 2 of a type.
        perform ostinato.refuse_argument('job_type', left(a_type, 80),
            'it must be letters, digits, _, -, ., : and /, at most 200 characters');
    elsif a_dedup not in ('skip', 'enqueue', 'replace') then
        perform ostinato.refuse_argument('dedup', a_dedup, 'it must be skip, enqueue or replace');
    elsif a_priority not between -32768 and 32767 then
        perform ostinato.refuse_argument('priority', a_priority::text, 'it must be from -32768 to 32767');
    elsif a_max_attempts not between 1 and 32767 then
        perform ostinato.refuse_argument('max_attempts', a_max_attempts::text, 'it must be from 1 to 32767');
    elsif a_version < 1 then
        perform ostinato.refuse_argument('job_version', a_version::text, 'it must be more than 0');
    elsif a_timeout <= interval '0' or a_timeout > interval '366 days' then
        perform ostinato.refuse_argument('timeout', a_timeout::text, 'it must be more than 0 and at most 366 days');
    elsif $17 < interval '0' then
        perform ostinato.refuse_argument('idempotency_ttl', $17::text, 'it cannot be less than 0');
    elsif $6 is not null and $7 is not null then
        perform ostinato.refuse_argument('delay', $7::text, 'give run_at or delay, not both');
    end if;

    -- The key is taken before the job is made: of two callers the second waits here for the first's commit.
    if a_key is not null then
        insert into ostinato.idempotency_keys as held (namespace, job_type, key, job_id, expires_at)
        values (a_namespace, a_type, a_key, new_id, now() + coalesce($17, interval '1 day'))
        on conflict (namespace, job_type, key) do update
            set job_id = excluded.job_id, expires_at = excluded.expires_at where held.expires_at <= now();
        if not found then
            select held.job_id, false into id, created from ostinato.idempotency_keys as held
            where held.namespace = a_namespace and held.job_type = a_type and held.key = a_key;
            return;
        end if;
    end if;

    if a_dedup_key is null then
        insert into ostinato.jobs (id, namespace, queue, job_type, job_version, payload, priority, run_at,
            max_attempts, timeout, concurrency_key, context, schedule_id)
        values (new_id, a_namespace, a_queue, a_type, a_version, a_payload, a_priority, a_run_at,
            a_max_attempts, a_timeout, a_concurrency_key, a_context, a_schedule_id);
        if a_run_at <= now() and ostinato.anyone_idle() then
            perform ostinato.wake(a_namespace, a_queue, a_priority::smallint);
        end if;
        id := new_id;
        created := true;
        return;
    end if;

    -- "offset 0" keeps the planner from walking the primary key backwards until it meets the key.
    -- Each turn looks, then acts. The unique index lets one job of the key wait that has not run yet, so whoever came in
    -- between, and has not even committed, is waited for, makes the insert a conflict, and sends it round again.
    for turn in 1 .. 100 loop
        if a_dedup = 'skip' then
            select live.id, false into id, created
            from (select jobs.id from ostinato.jobs
                  where namespace = a_namespace and job_type = a_type and dedup_key = a_dedup_key
                  offset 0) as live
            order by live.id desc limit 1;
            exit when found;
        elsif a_dedup = 'replace' then
            -- If a worker claims it first, this update waits for the claim, sees it running, and leaves it alone.
            update ostinato.jobs as waiting
            set payload = a_payload, queue = a_queue, priority = a_priority, run_at = a_run_at,
                max_attempts = a_max_attempts, timeout = a_timeout, context = a_context, job_version = a_version,
                concurrency_key = a_concurrency_key, schedule_id = a_schedule_id,
                state = 'pending', attempt = 0, attempts = '[]', error_code = null, error_message = null,
                progress = null, started_at = null
            where waiting.state in ('pending', 'retrying') and waiting.id = (
                select live.id
                from (select jobs.id from ostinato.jobs
                      where namespace = a_namespace and job_type = a_type and dedup_key = a_dedup_key
                          and state in ('pending', 'retrying')
                      offset 0) as live
                order by live.id desc limit 1)
            returning waiting.id, false into id, created;
            exit when found;
        end if;

        insert into ostinato.jobs (id, namespace, queue, job_type, job_version, payload, priority, run_at,
            max_attempts, timeout, dedup_key, concurrency_key, context, schedule_id, stacked)
        values (new_id, a_namespace, a_queue, a_type, a_version, a_payload, a_priority, a_run_at,
            a_max_attempts, a_timeout, a_dedup_key, a_concurrency_key, a_context, a_schedule_id, a_dedup = 'enqueue')
        on conflict do nothing
        returning jobs.id, true into id, created;
        exit when found;
    end loop;
    if id is null then
        raise exception 'ostinato: dedup key % changed hands 100 times; try again', quote_literal(a_dedup_key)
            using errcode = 'serialization_failure';
    end if;

    if a_key is not null and id <> new_id then
        update ostinato.idempotency_keys as held set job_id = id
        where held.namespace = a_namespace and held.job_type = a_type and held.key = a_key;
    end if;
    if a_run_at <= now() and ostinato.anyone_idle() then
        perform ostinato.wake(a_namespace, a_queue, a_priority::smallint);
    end if;
end
$$;
