"""How fast, as ratios against the least that a queue can do on the same server. The method is in README.md."""
