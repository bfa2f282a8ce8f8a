"""From raw logs to signatures and the store (import it as ``crashpath.ingest``)."""
