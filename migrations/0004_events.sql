-- What handlers tell while they run (`ctx.emit`). The rest of a job's story is in its own row.

create table ostinato.job_events (
    id      uuid primary key default ostinato.uuidv7(),
    job_id  uuid not null,
    at      timestamptz not null default clock_timestamp(),
    attempt smallint not null,
    event   jsonb not null
);
create index job_events_job on ostinato.job_events (job_id, at, id);
create index job_events_at on ostinato.job_events (at);
