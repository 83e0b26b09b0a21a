"""What the demo tells: the whole life of a job, each step done for real through the store."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

import click

from ostinato import enqueue, store
from ostinato.errors import NotFound
from ostinato.postgres import PostgresConnection
from ostinato.settings import Settings
from ostinato.store import Claimed, JobType, Lanes, NewWorker

NAMESPACE: Final = "demo"
TYPE: Final = "send_email"
LONG: Final = timedelta(minutes=5)  # a lease that outlasts the story
SHORT: Final = timedelta(seconds=1)  # a lease and a delay that nobody has to wait long for
PAUSE: Final = 0.2 if sys.stdout.isatty() else 0.0  # so that a person can read along


class Story:
    """A queue of its own for each telling, so that what an interrupted one left behind is in nobody's way."""

    def __init__(self, conn: PostgresConnection, settings: Settings) -> None:
        self.conn = conn
        self.settings = settings
        self.queue = f"demo-{uuid4().hex[:8]}"
        self.worker = UUID(int=0)

    async def tell(self) -> None:
        scenes: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("A job is part of your transaction", self.roll_back),
            ("A job that fails is tried again", self.fail_and_succeed),
            ("A job that cannot work becomes a dead letter, until a person says so", self.bury_and_redrive),
            ("A job is called off", self.call_off),
            ("A worker dies; its job does not", self.die_and_recover),
        )
        self.worker = await self.hire(LONG)
        for number, (title, scene) in enumerate(scenes, 1):
            click.secho(f"\n{number}. {title}", bold=True)
            await scene()
        await store.retire_workers(self.conn, [self.worker])
        click.echo("\nThat was a job's life. Yours begin with `ostinato --help`.")

    async def roll_back(self) -> None:
        transaction = self.conn.transaction()
        await transaction.start()
        lost = await self.put({"to": "nobody@example.com"})
        await self.say("enqueue", "inside a transaction, which then rolls back")
        await transaction.rollback()
        try:
            await store.get_job(self.conn, lost)
        except NotFound:
            await self.say("", "no job was ever there: it commits with your data, or not at all")

    async def fail_and_succeed(self) -> None:
        job_id = await self.put({"to": "ada@example.com"})
        await self.look(job_id, "enqueue")
        job = await self.take(job_id)
        await store.progress(self.conn, job.held, {"sent": 0, "of": 1})
        await self.look(job_id, "progress", 'the handler reports {"sent": 0, "of": 1}')
        message = "the mail server did not answer"
        await store.retry(self.conn, job.held, delay=SHORT, code="NETWORK_ERROR", message=message)
        await self.look(job_id, "retry", f"NETWORK_ERROR: {message}; again in 1 s")
        await asyncio.sleep(SHORT.total_seconds())
        job = await self.take(job_id)
        await store.complete(self.conn, [job], [{"message_id": "<1@example.com>"}])
        await self.look(job_id, "complete", "moved to history, with its output")

    async def bury_and_redrive(self) -> None:
        job_id = await self.put({"to": "not an address"})
        await self.look(job_id, "enqueue")
        job = await self.take(job_id)
        await store.dead_letter(self.conn, job.held, code="PAYLOAD_INVALID", message="no such address")
        await self.look(job_id, "dead_letter", "PAYLOAD_INVALID: no such address")
        await store.redrive(self.conn, [job_id])
        await self.look(job_id, "redrive", "a person has mended the cause (`ostinato dead-letters retry`)")
        job = await self.take(job_id)
        await store.complete(self.conn, [job])
        await self.look(job_id, "complete")

    async def call_off(self) -> None:
        job_id = await self.put({"to": "eve@example.com"}, delay="1h")
        await self.look(job_id, "enqueue", "for in an hour")
        await store.cancel(self.conn, job_id, reason="a change of mind")
        await self.look(job_id, "cancel", "a change of mind (`ostinato jobs cancel`)")

    async def die_and_recover(self) -> None:
        job_id = await self.put({"to": "bob@example.com"})
        await self.look(job_id, "enqueue")
        doomed = await self.hire(SHORT)
        late = await self.take(job_id, worker=doomed)
        await self.say("", "kill -9: the worker is gone, and does not renew its lease of 1 s")
        await asyncio.sleep(SHORT.total_seconds() * 1.1)
        await store.expire_workers(self.conn)
        await store.recover(self.conn, max_attempts=self.settings.max_attempts, poison=self.settings.poison)
        await self.look(job_id, "recover", "the crash counts as an attempt")
        job = await self.take(job_id)
        lost = await store.complete(self.conn, [late])
        await self.say("", f"the dead worker wakes up and says it is done: {len(lost)} write refused, its lease is old")
        await store.complete(self.conn, [job])
        await self.look(job_id, "complete", "once")

    async def hire(self, lease: timedelta) -> UUID:
        worker = NewWorker(namespace=NAMESPACE, queues=[self.queue], job_types=[JobType(name=TYPE)])
        return await store.register_worker(self.conn, worker, lease=lease)

    async def put(self, payload: dict[str, str], **options: Any) -> UUID:
        made = await enqueue(self.conn, TYPE, payload, namespace=NAMESPACE, queue=self.queue, **options)
        return made.id

    async def take(self, job_id: UUID, *, worker: UUID | None = None) -> Claimed:
        lanes = Lanes(NAMESPACE, [self.queue])
        [job] = await store.claim(self.conn, worker or self.worker, lanes, types=[TYPE], limit=1)
        await self.look(job_id, "claim", f"attempt {job.attempt}, lease {job.lease}")
        return job

    async def look(self, job_id: UUID, move: str, remark: str = "") -> None:
        """Say what the database says of the job now."""
        job = await store.get_job(self.conn, job_id)
        await self.say(move, f"{click.style(f'{job.state:14}', fg='cyan')}{remark or f'job {job_id}'}")

    async def say(self, move: str, text: str) -> None:
        click.echo(f"   {move:12} {'→ ' if move else '  '}{text}")
        await asyncio.sleep(PAUSE)
