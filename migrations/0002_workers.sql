-- Who works, what they can do, and how much of it at once.

-- One row per running worker process. The id is made anew at each boot, so a restarted pod is another worker.
create table ostinato.workers (
    id               uuid primary key default ostinato.uuidv7(),
    lease_expires_at timestamptz not null,
    started_at       timestamptz not null default now(),
    draining_at      timestamptz,
    ended_at         timestamptz,
    concurrency      integer not null default 1 check (concurrency > 0),
    idle             boolean not null default false,
    namespace        text collate "C" not null default 'default',
    pool             text collate "C",
    pod              text collate "C",
    queues           text[] collate "C" not null,
    job_types        text[] collate "C" not null default '{}',
    limited          text[] collate "C" not null default '{}',
    info             jsonb not null default '{}'
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
comment on column ostinato.workers.ended_at is 'it retired, or its lease ran out: it holds nothing any more, for good';
comment on column ostinato.workers.draining_at is 'it finishes what it runs and claims nothing more';
comment on column ostinato.workers.idle is 'waits for a notification: whoever enqueues now sends one';
comment on column ostinato.workers.job_types is 'what it serves: the type, or type@version from version 2 on';
comment on column ostinato.workers.limited is 'the types for which it says a limit';
create index workers_idle on ostinato.workers (namespace) where idle and ended_at is null;
create index workers_ended on ostinato.workers (ended_at) where ended_at is not null;

-- What the workers say of the types that they serve: enough for others to refuse a bad payload early.
create table ostinato.job_types (
    namespace      text collate "C" not null,
    job_type       text collate "C" not null,
    job_version    integer not null check (job_version > 0),
    queue          text collate "C",
    max_attempts   smallint check (max_attempts > 0),
    timeout        interval check (timeout > interval '0'),
    payload_schema jsonb,
    updated_at     timestamptz not null default now(),
    primary key (namespace, job_type, job_version)
);

-- Types that are limited, one row each. Types without a limit never touch this table nor the next.
create table ostinato.limits (
    namespace   text collate "C" not null,
    job_type    text collate "C" not null,
    max_running smallint check (max_running > 0),
    rate        double precision check (rate > 0),
    burst       double precision check (burst >= 1),
    tokens      double precision not null default 0,
    refilled_at timestamptz not null default now(),
    primary key (namespace, job_type),
    check ((rate is null) = (burst is null))
) with (fillfactor = 50);
comment on column ostinato.limits.max_running is 'how many may run at once in the whole cluster; null: any number';
comment on column ostinato.limits.rate is 'how many may start in a second, on average; null: any number';
comment on column ostinato.limits.burst is 'the most tokens that the bucket holds';

-- One row per slot. A claim locks free ones and skips those that another claim holds, so that two claims can
-- never count the same slot; a counter would drift with the first crash.
create table ostinato.slots (
    namespace text collate "C" not null,
    job_type  text collate "C" not null,
    slot      smallint not null,
    job_id    uuid,
    primary key (namespace, job_type, slot)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
comment on column ostinato.slots.job_id is 'the running job that holds it';

-- Until when somebody may be waiting, in seconds since 1970. A sequence, since reading it costs an enqueue next to
-- nothing, where looking into `workers` costs a tenth of it, and since it leaves no dead rows behind. It is set before
-- the worker's row says so, and by every renewal: two that set it at once may leave it at the end of the shorter lease,
-- and the next renewal, a third of a lease later, mends that. A hint, so whoever may see the schema may read and set it.
create sequence ostinato.idle_until;
grant usage, select, update on sequence ostinato.idle_until to public;

create function ostinato.anyone_idle() returns boolean language sql volatile as
    'select pg_sequence_last_value(''ostinato.idle_until'') >= extract(epoch from now())';

create function ostinato.will_be_idle(until timestamptz) returns bigint language sql volatile as $$
    select setval('ostinato.idle_until', greatest(
        pg_sequence_last_value('ostinato.idle_until'), ceil(extract(epoch from until))::bigint))
$$;

-- NOTIFY takes a database-wide lock until its transaction has committed, so it is sent only while a worker
-- of that queue says that it waits. A hint: whoever misses it finds the job by polling.
create function ostinato.wake(a_namespace text, a_queue text, a_priority smallint) returns void language plpgsql as $$
begin
    if exists (select from ostinato.workers
               where idle and ended_at is null and namespace = a_namespace
                   and a_queue = any(queues) and lease_expires_at > now()) then
        perform pg_notify('ostinato_jobs', a_namespace || '/' || a_queue || '/' || a_priority);
    end if;
end
$$;

-- A claim that a crash of the server undoes was never made: its job waits again, and what its worker writes is refused.
-- So a claim need not wait for the disk. Only where it is alone in its transaction: others' work is not ours to risk.
create function ostinato.need_not_be_durable(alone boolean) returns boolean language plpgsql as $$
begin
    if alone then
        perform set_config('synchronous_commit', 'off', true);
    end if;
    return true;
end
$$;

-- However a job stops running, its slot is free in the same transaction, and whoever waits for the slot or for
-- the job's concurrency key hears of it. And out of the room of live jobs without having run lead only two ways, which
-- are rare enough to look where the job went.
create function ostinato.let_go() returns trigger language plpgsql as $$
begin
    if old.state <> 'running'
        and not exists (select from ostinato.dead_letters where id = old.id)
        and not exists (
            select from ostinato.job_history where id = old.id and finished_at = now() and state = 'cancelled') then
        raise exception 'ostinato: job % is %, and can only be cancelled or buried, not removed or completed',
            old.id, old.state using errcode = 'check_violation', hint = '`ostinato jobs cancel` calls it off.';
    end if;
    if old.slot is not null then
        update ostinato.slots set job_id = null
        where namespace = old.namespace and job_type = old.job_type and slot = old.slot and job_id = old.id;
    end if;
    if old.slot is not null or old.concurrency_key is not null then
        perform ostinato.wake(old.namespace, old.queue, old.priority);
    end if;
    return null;
end
$$;

create trigger let_go_on_update after update of state on ostinato.jobs for each row
    when (old.state = 'running' and new.state <> 'running' and (old.slot is not null or old.concurrency_key is not null))
    execute function ostinato.let_go();
create trigger let_go_on_delete after delete on ostinato.jobs for each row
    when (old.state <> 'running' or old.slot is not null or old.concurrency_key is not null)
    execute function ostinato.let_go();
