"""A module that fails when it is imported."""

1 / 0
