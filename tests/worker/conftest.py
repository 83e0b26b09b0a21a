from collections.abc import AsyncIterator

import pytest

from ostinato_worker.isolation import Isolator


@pytest.fixture
async def isolator() -> AsyncIterator[Isolator]:
    isolator = Isolator(["tests.worker.jobs"], grace=0.3)
    await isolator.start()
    yield isolator
    await isolator.close()
