//! Tallies and totals: the counters that make a job's progress exact.
//!
//! A tally counts 64 consecutive chunks. One conditional write on the tally commits a chunk: it sets the chunk's
//! [`Mark`] and adds its counts, if and only if the mark is not set yet. So a chunk counts once, even if its message is
//! delivered many times. Several chunks may commit in one write, all of them or none. A tally is closed when all of its
//! chunks are committed. Its counts are then folded into the attempt's [`Totals`], also once. An attempt is complete
//! when all of its tallies are closed.

use std::collections::BTreeSet;
use std::ops::{Add, AddAssign};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::cost::Usage;
use crate::model::ids::RunId;
use crate::text::{Chunk, Position};

/// Number of chunks of a tally: with 64 marks of 8 bytes its row stays within one write unit of 1 KiB.
pub const CHUNKS_PER_TALLY: usize = 64;

/// Items by outcome.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    pub succeeded: u64,
    /// Items that failed, or were given up.
    pub failed: u64,
    /// Items that were not processed because the job was stopped.
    pub skipped: u64,
}

impl Counts {
    /// All items accounted for.
    pub const fn sum(&self) -> u64 {
        self.succeeded + self.failed + self.skipped
    }

    pub const fn all_skipped(items: u64) -> Self {
        Self { succeeded: 0, failed: 0, skipped: items }
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Result of a committed chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkKind {
    /// Processed, and the run left no objects.
    Clean,
    /// Processed, and some items failed: the run output lists them and the outputs of the others.
    HasFailed,
    /// Processed, none failed, and the run output holds outputs.
    HasOutputs,
    /// Not processed: the job was stopped before the chunk began.
    Skipped,
    /// Ended early because the job was stopped; the run output says where.
    Stopped,
}

/// The mark of a committed chunk on its tally: how the chunk ended, and the run that won.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub kind: MarkKind,
    /// The run whose commit won.
    pub run: RunId,
}

impl Mark {
    /// The size of a mark in a tally row, in bytes.
    pub const BYTES: usize = 1 + RunId::BYTES;

    /// The stored form: the kind, then the run id.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = match self.kind {
            MarkKind::Clean => b'c',
            MarkKind::HasFailed => b'o',
            MarkKind::HasOutputs => b'p',
            MarkKind::Skipped => b's',
            MarkKind::Stopped => b'x',
        };
        bytes[1..].copy_from_slice(self.run.as_bytes());
        bytes
    }

    /// Reads the stored form; `None` if it is invalid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, run) = bytes.split_first()?;
        let kind = match kind {
            b'c' => MarkKind::Clean,
            b'o' => MarkKind::HasFailed,
            b'p' => MarkKind::HasOutputs,
            b's' => MarkKind::Skipped,
            b'x' => MarkKind::Stopped,
            _ => return None,
        };
        Some(Self { kind, run: RunId::from_bytes(run.try_into().ok()?) })
    }
}

/// The address of a chunk in its job: attempt, tally and place in the tally.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ChunkAddress {
    /// The attempt, counted from 1.
    pub attempt: u32,
    /// The tally, counted from 0.
    pub tally: u32,
    /// The place in the tally, 0 to 63.
    pub index: u8,
}

impl ChunkAddress {
    /// The number of the chunk in its attempt, counted from 0.
    pub fn number(self) -> u64 {
        u64::from(self.tally) * CHUNKS_PER_TALLY as u64 + u64::from(self.index)
    }

    /// The chunk with this number in an attempt.
    pub fn of_number(attempt: u32, number: u64) -> Self {
        let per_tally = CHUNKS_PER_TALLY as u64;
        Self {
            attempt,
            tally: u32::try_from(number / per_tally).unwrap_or(u32::MAX),
            index: u8::try_from(number % per_tally).unwrap_or(u8::MAX),
        }
    }

    /// The chunk this many places further.
    #[must_use]
    pub fn after(self, places: u32) -> Self {
        Self::of_number(self.attempt, self.number() + u64::from(places))
    }

    /// The chunk this many places before, if it exists.
    pub fn before(self, places: u32) -> Option<Self> {
        Some(Self::of_number(self.attempt, self.number().checked_sub(u64::from(places))?))
    }
}

/// The counter row of up to 64 consecutive chunks of one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tally {
    pub attempt: u32,
    /// Its number, counted from 0.
    pub number: u32,
    /// Number of chunks it counts, at most [`CHUNKS_PER_TALLY`].
    pub expected: u32,
    /// Number of items of these chunks.
    pub items: u64,
    /// Number of committed chunks.
    pub done: u32,
    /// Items of the committed chunks by outcome.
    pub counts: Counts,
    /// Bytes of the committed chunks.
    pub bytes: u64,
    /// Usage of the runs of its chunks, as far as it was stored. No count depends on it.
    pub usage: Usage,
    /// The time of its last change.
    pub at: Timestamp,
    /// Where its first chunk begins. A resumed split cuts the chunks again from here.
    pub start: Position,
    /// The run of the split that stored its chunks' text, if they are not ranges of the upload.
    pub stored_by: Option<RunId>,
    /// True if the tally that waits for this one is known to be sent.
    pub next_sent: bool,
    /// The marks of the committed chunks, by place.
    pub marks: [Option<Mark>; CHUNKS_PER_TALLY],
}

impl Tally {
    /// The tally of these chunks, none of them committed.
    pub fn of(attempt: u32, number: u32, start: Position, chunks: &[Chunk], at: Timestamp) -> Self {
        debug_assert!(chunks.len() <= CHUNKS_PER_TALLY);
        Self {
            attempt,
            number,
            expected: u32::try_from(chunks.len()).unwrap_or(u32::MAX),
            items: chunks.iter().map(|chunk| u64::from(chunk.items)).sum(),
            done: 0,
            counts: Counts::default(),
            bytes: 0,
            usage: Usage::NONE,
            at,
            start,
            stored_by: None,
            next_sent: false,
            marks: [None; CHUNKS_PER_TALLY],
        }
    }

    /// True if all its chunks are committed. A closed tally no longer changes.
    pub const fn is_closed(&self) -> bool {
        self.done == self.expected
    }

    /// True if at least half of its chunks are committed: then the tally that waits for it may be sent.
    pub const fn is_half_done(&self) -> bool {
        self.done * 2 >= self.expected
    }

    /// True if the last commit, of this many chunks, made it half done. Exactly one commit of a tally does.
    pub const fn is_half_done_by(&self, chunks: u32) -> bool {
        self.is_half_done() && self.done >= chunks && (self.done - chunks) * 2 < self.expected
    }

    /// The numbers of the chunks that are not committed, ascending. A closed tally has none, also where its rest was
    /// skipped without marks.
    pub fn uncommitted(&self) -> impl Iterator<Item = u64> {
        let first = u64::from(self.number) * CHUNKS_PER_TALLY as u64;
        let places = (0..).zip(&self.marks).take(if self.is_closed() { 0 } else { self.expected as usize });
        places.filter(|(_, mark)| mark.is_none()).map(move |(place, _): (u64, _)| first + place)
    }

    /// The mark of the chunk at this place, if it is committed.
    pub fn mark(&self, index: u8) -> Option<Mark> {
        self.marks.get(usize::from(index)).copied().flatten()
    }

    /// True if the chunk at this place is committed, or the tally was closed without it.
    pub fn accounts_for(&self, index: u8) -> bool {
        self.mark(index).is_some() || self.is_closed()
    }
}

/// One chunk's commit: what the conditional write on its tally adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub chunk: ChunkAddress,
    pub mark: Mark,
    /// Its items by outcome; they add up to the items of the message.
    pub counts: Counts,
    /// Its bytes in the file.
    pub bytes: u64,
    pub at: Timestamp,
}

impl Commit {
    /// The error of commits that [`tally_of`](Self::tally_of) knows no tally for.
    pub const NOT_OF_ONE_TALLY: &str = "they are not different chunks of one tally";

    /// The attempt and the number of the tally that these commits are for. `None` if there is none, or if they are not
    /// different chunks of one tally.
    pub fn tally_of(commits: &[Self]) -> Option<(u32, u32)> {
        let ChunkAddress { attempt, tally, .. } = commits.first()?.chunk;
        let places: BTreeSet<u8> = (commits.iter())
            .filter(|commit| (commit.chunk.attempt, commit.chunk.tally) == (attempt, tally))
            .map(|commit| commit.chunk.index)
            .filter(|index| usize::from(*index) < CHUNKS_PER_TALLY)
            .collect();
        (places.len() == commits.len()).then_some((attempt, tally))
    }

    /// The chunk of this commit in the tally that refused it: accounted for, or `None` if it was refused
    /// because of another chunk only.
    pub fn refused_by(&self, tally: &Tally) -> Option<Committed> {
        match tally.mark(self.chunk.index) {
            // Our own mark is our own commit: its reply was lost.
            Some(mark) if mark.run == self.mark.run => Some(Committed::WonBefore(tally.clone())),
            None if !tally.is_closed() => None,
            _ => Some(Committed::Lost(tally.clone())),
        }
    }
}

/// Result of the commit of a chunk, with the current tally.
#[derive(Clone, PartialEq, Debug)]
pub enum Committed {
    /// This run's commit counts, from now on.
    Won(Tally),
    /// This run's commit counts since an earlier write, whose reply was lost. Others may have seen it since.
    WonBefore(Tally),
    /// Another run committed the chunk first.
    Lost(Tally),
}

impl Committed {
    /// The current tally.
    pub const fn tally(&self) -> &Tally {
        match self {
            Self::Won(tally) | Self::WonBefore(tally) | Self::Lost(tally) => tally,
        }
    }
}

/// The sums of an attempt's closed tallies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub attempt: u32,
    /// The numbers of the closed tallies.
    pub closed: BTreeSet<u32>,
    pub items: u64,
    pub counts: Counts,
    pub bytes: u64,
    pub usage: Usage,
    /// Number of tallies of the attempt; known once the split has ended.
    pub final_tallies: Option<u32>,
    /// The time of the last change of the tally that was folded last: a sign of life.
    pub at: Option<Timestamp>,
}

impl Totals {
    /// True if all tallies are closed and no more will follow, so that all items of the attempt have an outcome.
    pub fn is_complete(&self) -> bool {
        self.final_tallies.is_some_and(|count| self.closed.len() == count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_reads_back_as_it_was_written() {
        let run = RunId::from_bytes([1, 2, 3, 4, 5, 6, 7]);
        use MarkKind::{Clean, HasFailed, HasOutputs, Skipped, Stopped};
        for kind in [Clean, HasFailed, HasOutputs, Skipped, Stopped] {
            let mark = Mark { kind, run };
            assert_eq!(Mark::from_bytes(&mark.to_bytes()), Some(mark));
        }
        assert_eq!(Mark::from_bytes(b"?1234567"), None);
        assert_eq!(Mark::from_bytes(b"c123"), None);
        assert_eq!(Mark::from_bytes(b""), None);
    }

    #[test]
    fn exactly_one_commit_makes_a_tally_half_done() {
        let chunk = Chunk { offset: 0, length: 1, first_row: 1, items: 1, mode: crate::text::ChunkMode::Items };
        for (chunks, half) in [(1, 1), (2, 1), (3, 2), (63, 32), (64, 32)] {
            let mut tally =
                Tally::of(1, 0, Position { offset: 0, row: 1 }, &vec![chunk; chunks], Timestamp::UNIX_EPOCH);
            let mut just = Vec::new();
            for done in 0..=tally.expected {
                tally.done = done;
                assert_eq!(tally.is_half_done(), done >= half, "{done} of {chunks}");
                just.extend(tally.is_half_done_by(1).then_some(done));
            }
            assert_eq!(just, [half], "of {chunks}");
        }
    }

    #[test]
    fn exactly_one_commit_of_several_chunks_makes_a_tally_half_done() {
        let chunk = Chunk { offset: 0, length: 1, first_row: 1, items: 1, mode: crate::text::ChunkMode::Items };
        for (chunks, steps) in [(64, [10, 22, 10, 22]), (64, [31, 1, 1, 31]), (5, [2, 1, 1, 1]), (4, [4, 0, 0, 0])] {
            let mut tally =
                Tally::of(1, 0, Position { offset: 0, row: 1 }, &vec![chunk; chunks], Timestamp::UNIX_EPOCH);
            let by = steps.into_iter().take_while(|step| *step > 0).filter(|step| {
                tally.done += step;
                tally.is_half_done_by(*step)
            });
            assert_eq!(by.count(), 1, "{steps:?} of {chunks}");
        }
    }

    #[test]
    fn totals_are_complete_only_once_the_number_of_tallies_is_known() {
        let mut totals = Totals { attempt: 1, ..Totals::default() };
        assert!(!totals.is_complete(), "an attempt still being split is never complete");
        totals.closed.extend([0, 1]);
        assert!(!totals.is_complete());
        totals.final_tallies = Some(3);
        assert!(!totals.is_complete());
        totals.closed.insert(2);
        assert!(totals.is_complete());
        assert!(Totals { final_tallies: Some(0), ..Totals::default() }.is_complete(), "an empty file completes");
    }
}
