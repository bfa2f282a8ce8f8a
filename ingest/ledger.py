"""Which sources were read, and how far: the ledger that makes a night exactly-once.

A source is known by host, hash of the first KiB and inode, and by the end of what was read of it (``tail``): programs
that restart print the same KiB again. Names change (rotation), inodes change (compression, copies back), heads grow
(a file shorter than a KiB), so each claim is decided by the first of ``claim``'s rules that holds, and what a file
*is now* is asked of the disk, never of the order of claims. *Holds* means: it begins the same, is not shorter than what
was read, and has the same bytes where that ended.

1. same inode, holds what was read, and a name that rotation gives or a full tail: the same source
2. same path, holds what was read, and the file that was read is not beside it under another name: the same
3. holds what was read in another place, while the place that was read is gone or holds something else now, and the name
   is one that rotation gives (``app.log`` → ``app.log.1.gz``): the same source, moved
4. same path (or inode) and head, but does not hold what was read: rewritten, a new generation
5. else: a new source

A source that somebody asked to have read again (``again``) is read from its start, in place of what it gave. So is one
that ``mended`` finds, before the rules: where the file's content was changed, which they would take for another's.

Paths are stored redacted; keyed hashes of the true path, of its folder and stem, and of the host match them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Set
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.orm import Session

from crashpath.ingest.rotation import siblings, stem_of
from crashpath.ingest.tables import Source
from crashpath.ingest.tail import TAIL, Place, Tail, tails_of

#: Bytes of the decompressed beginning that identify a source.
HEAD = 1024
#: Most rows of one family that a claim looks at, newest first.
_FAMILY = 50


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """A source as it is found now. ``head``: its first KiB, decompressed; ``size``: bytes on disk.

    ``inode`` is ``None`` for what is not a file (stdin): then ``path`` is the name given, or empty, and the
    head should be the whole content's hash or first KiB. ``tails``: what it holds at the places that ``Ledger.tails``
    names; ``None`` if nobody looked.
    """

    path: str
    host: str
    inode: int | None
    head: bytes
    size: int
    mtime: datetime
    compressed: bool = False
    tails: frozenset[Tail] | None = None


@dataclass(frozen=True, slots=True)
class SourceState:
    """Where to go on: read from ``offset``. ``known_size`` is what was read so far, both decompressed bytes.

    ``unchanged``: the file was read to its end and is as it was: there is nothing to do.
    """

    id: int
    offset: int
    known_size: int
    generation: int
    mtime: datetime
    unchanged: bool = False


class Ledger:
    """Claims sources for one night.

    ``key`` is the store's keyed hash, ``redact`` cleans the paths that are stored. ``again``: sources to be read from
    their start once more.
    """

    def __init__(
        self, key: Callable[[str], str], night_id: int, redact: Callable[[str], str], again: Set[int] = frozenset()
    ) -> None:
        self._key = key
        self._night_id = night_id
        self._redact = redact
        self._again = set(again)

    def known(self, session: Session, path: str, host: str, inode: int, size: int, mtime: datetime) -> bool:
        """Tell, from its name and ``stat`` alone, whether a file is as it was when it was read to its end."""
        found = session.scalar(
            select(Source.id).where(
                Source.host_key == self._key(host),
                Source.path_key == self._path_key(path, inode),
                Source.inode == inode,
                Source.size == size,
                Source.mtime == mtime,
                Source.superseded.is_(False),
                Source.problem.is_(None),
            )
        )
        return found is not None and found not in self._again

    def mended(self, session: Session, found: SourceIdentity) -> int | None:
        """Return the source to be read again that lay where ``found`` does and holds what was read no longer."""
        if not self._again or ((row := self._match(session, found)) is not None and self._holds(row, found)):
            return None
        here = Source.host_key == self._key(found.host), Source.path_key == self._path_key(found.path, found.inode)
        query = select(func.max(Source.id)).where(Source.id.in_(self._again), *here, Source.superseded.is_(False))
        return session.scalar(query)

    def tails(self, session: Session, found: SourceIdentity) -> tuple[Place, ...]:
        """Name the places of ``found`` that tell whether it holds what was read of sources that began the same."""
        tails = {_tail(row) for row in self._candidates(session, found)}
        return tuple(sorted(Place(tail.end, tail.length) for tail in tails if tail is not None))

    def claim(self, session: Session, found: SourceIdentity, mended: int | None = None) -> SourceState:
        """Find the source that ``found`` is, or make a new one, by the rules of this module; needs a write session.

        ``mended`` is one that ``found`` stands in the place of, whatever the rules say.
        """
        row = self._match(session, found) if mended is None else session.get_one(Source, mended)
        if row is None:
            row = self._new(found, generation=0)
            session.add(row)
        elif mended is not None or (row.id in self._again and self._holds(row, found)):
            self._again.discard(row.id)
            _start_over(row, found)
        elif not self._holds(row, found):
            row.superseded = True
            row = self._new(found, generation=row.generation + 1)
            session.add(row)
        unchanged = row.size == found.size and row.mtime == found.mtime and row.problem is None
        self._refresh(row, found)
        session.flush()
        return SourceState(row.id, row.offset, row.seen, row.generation, found.mtime, unchanged)

    def problem(self, session: Session, state: SourceState, sentence: str | None) -> None:
        """Note why a source could not be read to its end (redacted), so that the next night tries again."""
        row = session.get_one(Source, state.id)
        row.problem = None if sentence is None else self._redact(sentence)

    # -- the rules -----------------------------------------------------------------------------

    def _match(self, session: Session, found: SourceIdentity) -> Source | None:
        rows = self._candidates(session, found)
        path_key = self._path_key(found.path, found.inode)
        if found.inode is None:
            named = [r for r in rows if r.path_key == path_key]
            return next((r for r in named if self._holds(r, found)), named[0] if named else None)
        same_inode = [r for r in rows if r.inode == found.inode and not self._reused(r, found)]
        whole = [r for r in same_inode if self._holds(r, found)]
        if whole:
            return max(whole, key=lambda r: (r.path_key == path_key, not r.superseded, r.id))
        same_path = [r for r in rows if r.path_key == path_key and not r.superseded]
        for row in same_path:
            if self._holds(row, found) and not self._moved_beside(row, found):
                return row
        for row in rows:
            if row.path_key != path_key and self._holds(row, found) and self._rotated_to(row, found):
                return row
        for row in same_path + [r for r in same_inode if not r.superseded]:
            if row.inode == found.inode or not self._moved_beside(row, found):
                return row
        return None

    def _candidates(self, session: Session, found: SourceIdentity) -> list[Source]:
        """Return the host's sources that begin as ``found`` does and are related by place or name, newest first."""
        host_key = self._key(found.host)
        lengths = session.scalars(
            select(Source.head_len).distinct().where(Source.host_key == host_key, Source.head_len <= len(found.head))
        ).all()
        here = or_(Source.path_key == self._path_key(found.path, found.inode), Source.inode == found.inode)
        family, stem = self._names(found)
        related = or_(here, Source.family_key == family, and_(Source.stem_key == stem, Source.head_len == HEAD))
        hashes = [head_hash(found.head[:n]) for n in lengths if n]
        # An empty head says nothing: such a source is known by its place only.
        same = or_(and_(Source.head_hash.in_(hashes), related), and_(Source.head_len == 0, here))
        query = select(Source).where(Source.host_key == host_key, same)
        return list(session.scalars(query.order_by(case((here, 0), else_=1), Source.id.desc()).limit(_FAMILY)))

    def _reused(self, row: Source, found: SourceIdentity) -> bool:
        """Whether another file got the inode of a deleted one.

        A rename would have kept the time of an equal file, and only rotation's names are believed without a full tail.
        """
        if row.path_key == self._path_key(found.path, found.inode):
            return False
        if row.size == found.size and row.mtime != found.mtime:
            return True
        known = row.tail_len == TAIL and found.tails is not None and self._holds(row, found)
        return not known and row.stem_key != self._names(found)[1]

    @staticmethod
    def _holds(row: Source, found: SourceIdentity) -> bool:
        """Whether all that was read can be there still: as much, and the same where it ended.

        Compressed sizes say nothing, and a source that was read by an older release has no tail.
        """
        if found.inode is not None and not found.compressed and found.size < row.seen:
            return False
        return found.tails is None or (tail := _tail(row)) is None or tail in found.tails

    def _moved_beside(self, row: Source, found: SourceIdentity) -> bool:
        """Whether the file that ``row`` read is in the same folder under another name (renamed by rotation)."""
        return row.inode != found.inode and any(
            e.inode() == row.inode and e.name != os.path.basename(found.path) for e in siblings(found.path)
        )

    def _rotated_to(self, row: Source, found: SourceIdentity) -> bool:
        family, _ = self._names(found)
        if row.head_len < HEAD and row.family_key != family:
            return False  # a short head is shared by many files ("Killed"), so only the same folder will do
        if row.superseded:
            return True
        place = self._place(row, found)
        if place is None:  # a rename would have kept the inode, so a plain file with a short head is another one
            return found.compressed or row.head_len == HEAD
        return not self._still_there(row, place)

    @staticmethod
    def _still_there(row: Source, place: str) -> bool:
        """Whether the place that ``row`` was read from still holds that content."""
        if row.compressed:
            return True
        try:
            with open(place, "rb") as file:
                head = file.read(row.head_len)
                if os.fstat(file.fileno()).st_size < row.seen or head_hash(head) != row.head_hash:
                    return False
        except OSError:
            return False
        tail = _tail(row)
        return tail is None or tail in (tails_of(place, [Place(tail.end, tail.length)], decoded=False) or ())

    def _place(self, row: Source, found: SourceIdentity) -> str | None:
        """Find the true path of ``row``: as it is stored, where redaction changed nothing, or beside ``found``."""
        if self._path_key(row.path, row.inode) == row.path_key:
            return row.path if os.path.exists(row.path) else None
        beside = (e.path for e in siblings(found.path))
        return next((path for path in beside if self._path_key(path, row.inode) == row.path_key), None)

    # -- rows ----------------------------------------------------------------------------------

    def _new(self, found: SourceIdentity, generation: int) -> Source:
        return Source(
            host_key=self._key(found.host),
            head_hash=head_hash(found.head),
            head_len=len(found.head),
            generation=generation,
            offset=0,
            seen=0,
            size=None,
            mtime=None,
            first_night_id=self._night_id,
            superseded=False,
            problem=None,
        )

    def _refresh(self, row: Source, found: SourceIdentity) -> None:
        if len(found.head) > row.head_len:
            row.head_hash, row.head_len = head_hash(found.head), len(found.head)
        row.path = self._redact(found.path)
        row.path_key = self._path_key(found.path, found.inode)
        row.family_key, row.stem_key = self._names(found)
        row.inode = found.inode
        row.compressed = found.compressed
        row.last_night_id = self._night_id
        # A generation that was overwritten and has come to light in a rotated file lives on there.
        row.superseded = False

    def _names(self, found: SourceIdentity) -> tuple[str, str]:
        stem = stem_of(found.path)
        return self._key(os.path.join(os.path.dirname(os.path.abspath(found.path)), stem)), self._key(stem)

    def _path_key(self, path: str, inode: int | None) -> str:
        # Two nights may name one file from different working folders; a stream has a name and no folder.
        return self._key(f"stream:{path}" if inode is None else os.path.abspath(path))


def head_hash(head: bytes) -> str:
    """Hash the beginning of a source; the caller keeps how many bytes it hashed."""
    return hashlib.blake2b(head, digest_size=16).hexdigest()


def _start_over(row: Source, found: SourceIdentity) -> None:
    """Forget how far a source was read, and what it held there."""
    row.offset = row.seen = 0
    row.tail_end = row.tail_len = row.tail_hash = row.size = row.mtime = None
    row.head_hash, row.head_len = head_hash(found.head), len(found.head)


def _tail(row: Source) -> Tail | None:
    if row.tail_end is None or row.tail_len is None or row.tail_hash is None:
        return None
    return Tail(row.tail_end, row.tail_len, row.tail_hash)
