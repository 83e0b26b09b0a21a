"""What a handler returned, as it goes to the database."""

from typing import Any

from ostinato.errors import InvalidArgument
from ostinato.failures import Code, PermanentError
from ostinato.payload import Json, encode_value


def encode_output(output: Any) -> Json | None:
    """Once, and at once: a generator is empty the second time, and what others hold too may have changed by then."""
    try:
        return encode_value("output", output)
    except InvalidArgument as error:
        raise PermanentError(str(error), code=Code.OUTPUT_INVALID) from None
