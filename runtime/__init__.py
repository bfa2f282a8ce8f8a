"""The inference runtime with its fallback (import it as ``crashpath.runtime``); it has no public names yet."""
