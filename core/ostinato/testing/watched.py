"""A handler that is watched: the pipeline keeps what becomes of an attempt, a test wants what it raised, too."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Self

from ostinato.handler import Bound, Handler


class Watched(Handler):
    """It runs where the test does, even if it is isolated: there it can be patched, and debugged."""

    raised: BaseException | None

    @classmethod
    def of(cls, handler: Handler) -> Self:
        facts = {field.name: getattr(handler, field.name) for field in fields(handler)}
        watched = cls(**facts | {"isolation": None})
        watched.raised = None
        return watched

    def bind(self) -> Bound:
        try:
            bound = super().bind()
        except BaseException as error:
            self.raised = error
            raise
        watch = self._watch_async if self.is_async else self._watch
        return replace(bound, function=watch(bound.function))

    def _watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:
                self.raised = error
                raise

        return watched

    def _watch_async(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(*arguments: Any) -> Any:
            try:
                return await function(*arguments)
            except BaseException as error:
                self.raised = error
                raise

        return watched
