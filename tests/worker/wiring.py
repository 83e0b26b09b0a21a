"""Makes jobs of another module's functions."""

from ostinato import job
from tests.worker import library

compute = job("compute", isolation="process")(library.compute)
compute_too = library.isolated("compute_too", library.compute)
both = [compute, compute_too]
