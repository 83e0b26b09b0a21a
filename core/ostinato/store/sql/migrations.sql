-- The record of what was applied.

-- name: try_lock
-- Held until the transaction ends, also behind PgBouncer; a session's lock would stay with a pooled connection. Tried,
-- not waited for: whoever waits holds a snapshot, and an index that is built concurrently waits for every snapshot.
select pg_try_advisory_xact_lock(hashtextextended('ostinato.schema_migrations', 0))

-- name: make_records
do $$
begin
    -- Not "if not exists", which asks for the right to create schemas even where there is nothing to do.
    if to_regnamespace('ostinato') is null then
        create schema ostinato;
    end if;
end
$$;
create table if not exists ostinato.schema_migrations (
    version    integer primary key,
    name       text not null,
    checksum   text not null,
    applied_at timestamptz not null default now()
)

-- name: be_brief
set local lock_timeout = '5s'

-- name: be_patient
-- We only hold the lock meanwhile; an index of a big table takes its time.
set local idle_in_transaction_session_timeout = 0

-- name: has_records
select to_regclass('ostinato.schema_migrations') is not null

-- name: applied
select version, name, checksum from ostinato.schema_migrations order by version

-- name: record
insert into ostinato.schema_migrations (version, name, checksum) values (:version, :name, :checksum)
