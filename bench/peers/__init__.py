"""Ostinato and other job queues through the same scenarios on the same server. The method is in ../README.md."""
