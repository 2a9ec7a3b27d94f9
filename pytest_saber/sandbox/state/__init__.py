"""The state of a workspace, read from outside it.

`reader.StateReader` is the way in. `overlay`, `scan`, `processes` and `wire` use the standard library only, because they are
also run inside a helper container where this process has no rights to read the engine's files.
"""
