"""Cannot be imported: a module that it needs is not there."""

import no_such_dependency  # type: ignore[import-not-found]  # noqa: F401
