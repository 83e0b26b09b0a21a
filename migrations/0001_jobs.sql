-- Where jobs live: three rooms of one shape.
--
--   jobs          pending, retrying, running: hot and small
--   job_history   completed, cancelled: one partition a day, dropped by retention
--   dead_letters  dead_lettered: kept until a person says otherwise
--
-- A move between rooms is one statement that deletes here and inserts there.

-- Time-ordered ids keep inserts at the right edge of every index. PostgreSQL 18 makes them itself; before,
-- the same layout is put together here: 48 bits of milliseconds, 12 bits of their fraction, random bits.
do $do$
begin
    if current_setting('server_version_num')::int >= 180000 then
        create function ostinato.uuidv7() returns uuid language sql volatile parallel safe
            as 'select pg_catalog.uuidv7()';
    else
        create function ostinato.uuidv7() returns uuid language sql volatile parallel safe as $$
            select encode(
                overlay(
                    overlay(uuid_send(gen_random_uuid())
                        placing substring(int8send(micros / 1000) from 3) from 1 for 6)
                    placing substring(int4send((7 << 12) + ((micros % 1000) * 4096 / 1000)::int) from 3) from 7 for 2),
                'hex')::uuid
            from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros) as clock
        $$;
    end if;
end
$do$;

-- The first id of an instant, so that "created since" is a range of ids.
create function ostinato.first_id(instant timestamptz) returns uuid language sql stable parallel safe as $$
    select encode(
        overlay('\x00000000000070008000000000000000'::bytea
            placing substring(int8send((extract(epoch from greatest(least(instant, '9999-01-01 00:00+00'), 'epoch')) * 1000)::bigint)
                from 3) from 1 for 6),
        'hex')::uuid
$$;

-- Each claim of each job takes a fresh token: the fence that every later write must name. Random, not from a sequence:
-- after a failover that loses the last moments a sequence gives the same numbers out again, and the worker of a lost
-- claim would pass for the holder of the new one.
create function ostinato.new_lease() returns bigint language sql volatile
    as 'select (random() * 9007199254740992)::bigint';

-- What may be in a column, as domains: they are checked when a value comes in, not again at every claim, and a session
-- prepares them once, where a table's CHECK is prepared anew by every statement. What a driver cannot read back (a year
-- 20000) would stop every claim that meets it.
create domain ostinato.payload as jsonb
    constraint "payload must be an object" check (jsonb_typeof(value) = 'object')
    constraint "payload must have at most 131072 bytes" check (octet_length(value::text) <= 131072);
create domain ostinato.context as jsonb
    constraint "context must be an object" check (jsonb_typeof(value) = 'object')
    constraint "context must have at most 131072 bytes" check (octet_length(value::text) <= 131072);
create domain ostinato.instant as timestamptz
    constraint "run_at must be from 1970 to 9998" check (
        value >= timestamptz '1970-01-01 00:00:00+00' and value < timestamptz '9999-01-01 00:00:00+00');
-- Names and keys collate "C": comparing them is memcmp, and a new libc cannot corrupt an index.
create domain ostinato.name as text collate "C"
    constraint "a name must have 1 to 200 bytes" check (octet_length(value) between 1 and 200);
create domain ostinato.key as text collate "C"
    constraint "a key must have 1 to 2000 bytes" check (octet_length(value) between 1 and 2000);

create table ostinato.jobs (
    id                  uuid not null default ostinato.uuidv7(),
    lease               bigint,
    run_at              ostinato.instant not null default now(),
    created_at          timestamptz not null default now(),
    started_at          timestamptz,
    finished_at         timestamptz,
    cancel_requested_at timestamptz,
    timeout             interval,
    worker_id           uuid,
    schedule_id         uuid,
    job_version         integer not null default 1,
    priority            smallint not null default 0,
    attempt             smallint not null default 0,
    max_attempts        smallint,
    slot                smallint,
    stacked             boolean not null default false,
    state               text collate "C" not null default 'pending',
    namespace           ostinato.name not null default 'default',
    queue               ostinato.name not null default 'default',
    job_type            ostinato.name not null,
    payload             ostinato.payload not null default '{}',
    attempts            jsonb not null default '[]',
    dedup_key           ostinato.key,
    concurrency_key     ostinato.key,
    error_code          text collate "C",
    error_message       text,
    context             ostinato.context,
    progress            jsonb,
    output              jsonb,
    constraint jobs_pkey primary key (id) with (fillfactor = 50)
);
comment on table ostinato.jobs is 'Live jobs: pending, retrying, running.';
comment on column ostinato.jobs.max_attempts is 'null: what the job type says';
comment on column ostinato.jobs.timeout is 'null: what the job type says';
comment on column ostinato.jobs.attempts is 'the failed attempts: [{attempt, worker, started, finished, code, message}]';
comment on column ostinato.jobs.slot is 'which of its type''s max_running slots a running job holds';
comment on column ostinato.jobs.stacked is
    'it may wait beside another of its dedup key: asked to, redriven, or claimed before and back again';

-- Room on each page, of the key's index too, for the versions that claims write: those that stay on their page need
-- less WAL, and no claim splits pages of a deep backlog's index. Vacuum early and without pausing, since every job
-- leaves two dead rows here and the table is small.
alter table ostinato.jobs set (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_insert_threshold = 10000,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index jobs_ready on ostinato.jobs (namespace, queue, priority, run_at, id)
    where state in ('pending', 'retrying');
create index jobs_running on ostinato.jobs (worker_id) where state = 'running';
-- Of the jobs of a dedup key one waits that has not run yet, under no id; all others are there under their own.
create unique index jobs_dedup on ostinato.jobs (namespace, job_type, dedup_key,
    (case when stacked or state = 'running' then id else '00000000-0000-0000-0000-000000000000'::uuid end))
    where dedup_key is not null;
-- Of the jobs of a concurrency key any number wait, each under its own id, and one runs, under no id: the limit, held
-- by the database itself.
create unique index jobs_key on ostinato.jobs (namespace, concurrency_key,
    (case state when 'running' then '00000000-0000-0000-0000-000000000000'::uuid else id end))
    where concurrency_key is not null;

create table ostinato.job_history (
    like ostinato.jobs including defaults including comments,
    -- A waiting job holds no lease, so only a running one can have been completed. One rule and not three, since each
    -- insert prepares each of them anew.
    constraint job_history_says_how_it_ended check (case state
        when 'completed' then lease is not null and started_at is not null and error_code is null
        when 'cancelled' then cancel_requested_at is not null
        else false end)
) partition by range (finished_at);
alter table ostinato.job_history alter finished_at set not null;
comment on table ostinato.job_history is 'Finished jobs: completed, cancelled. One partition a day.';
create index job_history_id on ostinato.job_history (id);
create index job_history_context on ostinato.job_history using gin (context jsonb_path_ops) where context is not null;

create table ostinato.dead_letters (
    like ostinato.jobs including defaults including comments,
    constraint dead_letters_pkey primary key (id),
    constraint dead_letters_state check (state = 'dead_lettered'),
    constraint dead_letters_says_why check (error_code is not null),
    -- Without lease and cancel request, a dead letter cannot pass for a completed or cancelled job.
    constraint dead_letters_let_go check (lease is null and slot is null and cancel_requested_at is null)
);
alter table ostinato.dead_letters alter finished_at set not null;
comment on table ostinato.dead_letters is 'Jobs that will not be tried again until a person says so.';
create index dead_letters_type on ostinato.dead_letters (namespace, job_type, id);
create index dead_letters_code on ostinato.dead_letters (namespace, error_code, id);
create index dead_letters_finished on ostinato.dead_letters (finished_at);
create index dead_letters_context on ostinato.dead_letters using gin (context jsonb_path_ops) where context is not null;

-- The failed attempts with one more: at most the last fifty, so that a job that fails for years stays small.
create function ostinato.with_attempt(
    attempts jsonb, attempt integer, worker_id uuid, started_at timestamptz, code text, message text
) returns jsonb language sql stable parallel safe as $$
    select case when jsonb_array_length(attempts) < 50 then attempts else attempts - 0 end || jsonb_build_object(
        'attempt', attempt, 'worker', worker_id, 'started', started_at, 'finished', now(),
        'code', code, 'message', message)
$$;

create function ostinato.refuse_move() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        raise exception 'ostinato: a job enters as pending and held by nobody, not as % (lease %)', new.state, new.lease
            using errcode = 'check_violation';
    elsif tg_op = 'DELETE' then
        raise exception 'ostinato: job % is %, and finished jobs do not change; retention drops partitions',
            old.id, old.state using errcode = 'check_violation';
    end if;
    raise exception 'ostinato: job % may not move from % (lease %) to % (lease %)',
        old.id, old.state, old.lease, new.state, new.lease using errcode = 'check_violation',
        hint = 'A running job has a lease, a worker and a start; one that waits has neither lease, worker, slot nor a '
            'request to cancel; neither has an end.';
end
$$;

-- The rules stand in the WHEN clauses, so that a legal move never calls a function. What a job must look like stands
-- there too, and not in a CHECK: an insert prepares both anew, some microseconds each, and needs the shortest rule.
-- They come after the write, since a trigger before it locks and reads the row once more.
create trigger enter_guard after insert on ostinato.jobs for each row
    when (new.state <> 'pending'
        or num_nonnulls(new.lease, new.worker_id, new.slot, new.cancel_requested_at, new.finished_at) > 0)
    execute function ostinato.refuse_move();

create trigger move_guard after update on ostinato.jobs for each row
    when (not case old.state
        when 'running' then
            new.state in ('pending', 'retrying') or (new.state = 'running' and new.lease = old.lease
                and new.worker_id = old.worker_id and new.slot is not distinct from old.slot
                and (old.cancel_requested_at is null or new.cancel_requested_at is not null))
        when 'retrying' then new.state in ('pending', 'retrying', 'running')
        else new.state in ('pending', 'running') end
        or new.id <> old.id
        or case new.state
            when 'running' then num_nulls(new.lease, new.worker_id, new.started_at)
            else num_nonnulls(new.lease, new.worker_id, new.slot, new.cancel_requested_at) end > 0
        or new.finished_at is not null or new.attempt < 0 or jsonb_typeof(new.attempts) <> 'array')
    execute function ostinato.refuse_move();

-- Out of the dead letters no way leads into history. Rare enough to look there. (Who leaves the live jobs is looked at by
-- the trigger that frees their slots, in the next file: one trigger costs an insert less than two.)
create function ostinato.refuse_departure() returns trigger language plpgsql as $$
begin
    if exists (select from ostinato.job_history where id = old.id) then
        raise exception 'ostinato: job % is a dead letter, which can only be tried again or forgotten', old.id
            using errcode = 'check_violation';
    end if;
    return null;
end
$$;

create trigger letter_leave_guard after delete on ostinato.dead_letters for each row
    execute function ostinato.refuse_departure();

create trigger finished_guard before update or delete on ostinato.job_history for each row
    execute function ostinato.refuse_move();

create trigger letter_guard before update of id, state on ostinato.dead_letters for each row
    when (new.state <> old.state or new.id <> old.id)
    execute function ostinato.refuse_move();

-- For a statement that finds its claim gone: to be sent together with a commit, which is then not reached.
create function ostinato.lease_lost(job uuid, lease bigint) returns boolean language plpgsql as $$
begin
    raise exception 'ostinato: job % is not held under lease % any more', job, lease using errcode = 'OS001';
end
$$;

-- Partitions are made as tables and then attached: attaching does not block readers, "partition of" does.
create function ostinato.make_partitions(days_ahead integer) returns integer language plpgsql
    set timezone = 'UTC' set datestyle = 'ISO' as $$
declare
    day date;
    made integer := 0;
    name text;
begin
    perform pg_advisory_xact_lock(hashtext('ostinato.make_partitions'));
    for day in select generate_series(-1, days_ahead) + (now() at time zone 'UTC')::date loop
        name := 'job_history_' || to_char(day, 'YYYYMMDD');
        continue when to_regclass('ostinato.' || name) is not null;
        execute format('create table ostinato.%I (like ostinato.job_history including defaults including constraints)', name);
        execute format('alter table ostinato.job_history attach partition ostinato.%I for values from (%L) to (%L)',
                       name, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC');
        made := made + 1;
    end loop;
    -- A day that is over gets an index by type. Today's rows do without: every completion would pay for it.
    for name in
        select relname from pg_inherits join pg_class on oid = inhrelid
        where inhparent = 'ostinato.job_history'::regclass and relname ~ '^job_history_[0-9]{8}$'
            and relname < 'job_history_' || to_char(now(), 'YYYYMMDD')
            and to_regclass('ostinato.' || relname || '_type') is null
    loop
        execute format('create index %I on ostinato.%I (namespace, job_type, id)', name || '_type', name);
    end loop;
    return made;
end
$$;

select ostinato.make_partitions(14);

create view ostinato.all_jobs as
    select id, namespace, queue, job_type, job_version, payload, state, priority, run_at, attempt, max_attempts,
           timeout, dedup_key, concurrency_key, context, worker_id, lease, attempts, error_code, error_message,
           progress, output, schedule_id, cancel_requested_at, created_at, started_at, finished_at
    from ostinato.jobs
    union all
    select id, namespace, queue, job_type, job_version, payload, state, priority, run_at, attempt, max_attempts,
           timeout, dedup_key, concurrency_key, context, worker_id, lease, attempts, error_code, error_message,
           progress, output, schedule_id, cancel_requested_at, created_at, started_at, finished_at
    from ostinato.job_history
    union all
    select id, namespace, queue, job_type, job_version, payload, state, priority, run_at, attempt, max_attempts,
           timeout, dedup_key, concurrency_key, context, worker_id, lease, attempts, error_code, error_message,
           progress, output, schedule_id, cancel_requested_at, created_at, started_at, finished_at
    from ostinato.dead_letters;
comment on view ostinato.all_jobs is 'Every job, in whichever room it is.';
