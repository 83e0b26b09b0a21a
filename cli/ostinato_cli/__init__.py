"""The commands. The composition root: the only room that may import all the others."""
