"""From signatures to clusters and failure classes (import it as ``crashpath.clustering``)."""
