"""The heavy parts, made when they are first needed: encoder, classifier, clusterer."""

from __future__ import annotations

from functools import lru_cache

from crashpath.clustering.classifier import Classifier, load_classifier
from crashpath.clustering.encoder import Encoder
from crashpath.clustering.map_step import Mapper
from crashpath.clustering.night import Clusterer
from crashpath.clustering.recluster_step import Reclusterer
from crashpath.clustering.runtime_encoder import open_encoder
from crashpath.dashboard.settings import Settings


@lru_cache(maxsize=2)
def encoder(name: str) -> Encoder:
    """The encoder of this name or path, loaded once a process."""
    return open_encoder(name)


@lru_cache(maxsize=1)
def classifier() -> Classifier:
    """The classifier that comes with the program."""
    return load_classifier()


def clusterer(settings: Settings) -> Clusterer:
    """What clusters a night under these settings; it loads the encoder only when something is new."""
    return Clusterer(lambda: encoder(settings.encoder), classifier)


def reclusterer(settings: Settings) -> Reclusterer:
    """What forms clusters anew under these settings; vectors are those of the store."""
    return Reclusterer(lambda: encoder(settings.encoder), classifier)


def mapper() -> Mapper:
    """What keeps the map of a store; vectors are those of the store."""
    return Mapper()
