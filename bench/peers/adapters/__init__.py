"""One program for each peer, which speaks the protocol in ../../README.md."""
