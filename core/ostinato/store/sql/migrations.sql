-- The record of what was applied.

-- name: lock
-- Held until the transaction ends, also behind PgBouncer; a session's lock would stay with a pooled connection.
select pg_advisory_xact_lock(hashtextextended('ostinato.schema_migrations', 0))

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

-- name: has_records
select to_regclass('ostinato.schema_migrations') is not null

-- name: applied
select version, name, checksum from ostinato.schema_migrations order by version

-- name: record
insert into ostinato.schema_migrations (version, name, checksum) values (:version, :name, :checksum)
