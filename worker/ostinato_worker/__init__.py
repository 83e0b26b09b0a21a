"""The worker: claims jobs and runs them."""
