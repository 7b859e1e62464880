//! The counters of an attempt that is running: its totals and its open tallies.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;

use crate::model::cost::Usage;
use crate::model::job::Job;
use crate::model::tally::{ChunkAddress, Counts, Tally, Totals};
use crate::ports::{JobStore, PortError};
use crate::progress::checkpoints;

/// Two open tallies with fewer closed ones than this between them share one request: to read the closed ones too costs
/// less than a second request.
const RANGE_GAP: u32 = 16;

/// The percent of an attempt counts items of unfinished chunks once its first chunk began so long ago. A chunk that one
/// run processes is committed before.
const UNFINISHED_AFTER: Duration = Duration::from_secs(60);

/// The most chunks whose checkpoints are read for that. Of more, each is less than one percent.
const UNFINISHED_MAX: usize = 100;

/// The counters of a running attempt. They are exact because the totals are read before the tallies: a tally that is
/// folded between the two reads counts once, as a tally.
#[derive(Clone, PartialEq, Debug)]
pub struct Counters {
    pub totals: Totals,
    /// The tallies that the totals do not include.
    pub open: Vec<Tally>,
    /// Items that are done in chunks that are not committed. They are in no sum. `None` if they are not
    /// [read](Self::with_at_work).
    pub at_work: Option<u64>,
}

impl Counters {
    /// Reads the counters of the job's current attempt.
    pub async fn read(jobs: &dyn JobStore, job: &Job) -> Result<Self, PortError> {
        Self::read_first(jobs, job, job.split.tallies).await
    }

    /// As [`read`](Self::read), of the first `tallies` of the attempt only.
    pub async fn read_first(jobs: &dyn JobStore, job: &Job, tallies: u32) -> Result<Self, PortError> {
        let totals = jobs.totals(job.job_guid, job.attempt).await?;
        let mut open = Vec::new();
        for numbers in open_ranges(&totals, tallies) {
            open.extend(jobs.tallies(job.job_guid, job.attempt, numbers).await?);
        }
        open.retain(|tally| !totals.closed.contains(&tally.number));
        Ok(Self { totals, open, at_work: None })
    }

    /// Reads what the unfinished chunks have done, if they are few, and the job is slow.
    ///
    /// Within an attempt it is read from some time on, because its chunks only get fewer.
    pub async fn with_at_work(self, jobs: &dyn JobStore, job: &Job, now: Timestamp) -> Result<Self, PortError> {
        let is_slow = job.first_chunk_at.is_some_and(|at| now >= at + UNFINISHED_AFTER);
        let open: Vec<u64> = self.open.iter().flat_map(Tally::uncommitted).take(UNFINISHED_MAX + 1).collect();
        if !job.is_split() || !is_slow || open.len() > UNFINISHED_MAX {
            return Ok(self);
        }
        let chunks = open.into_iter().map(|number| ChunkAddress::of_number(job.attempt, number));
        let found = checkpoints::of_chunks(jobs, chunks.map(|chunk| (job.job_guid, chunk))).await?;
        let at_work = found.into_iter().flatten().map(|checkpoint| u64::from(checkpoint.done)).sum();
        Ok(Self { at_work: Some(at_work), ..self })
    }

    /// Items accounted for, by how they ended.
    pub fn counts(&self) -> Counts {
        self.open.iter().fold(self.totals.counts, |sum, tally| sum + tally.counts)
    }

    /// Items of the tallies, accounted for or not.
    pub fn items(&self) -> u64 {
        self.open.iter().fold(self.totals.items, |sum, tally| sum + tally.items)
    }

    /// The progress of the attempt in whole percent: of its work, or, if that is more, of its items, with those of
    /// unfinished chunks.
    pub fn percent(&self, job: &Job) -> u8 {
        let (committed, whole) = self.work(job);
        // One that has ended shows what it showed before.
        let at_work = if job.is_ended() { Some(0) } else { self.at_work };
        let of_items = at_work.filter(|_| job.is_split()).map_or(0, |at_work| {
            let all = job.redrive.as_ref().map_or(job.items_dispatched(), |redrive| redrive.before.failed);
            let Counts { succeeded, failed, .. } = self.counts();
            percent(succeeded + failed + at_work, all)
        });
        percent(committed, whole).max(of_items)
    }

    /// The work of the attempt that is committed, and all of it: in bytes of the file in the first attempt, in items in
    /// a redrive.
    pub fn work(&self, job: &Job) -> (u64, u64) {
        match &job.redrive {
            None => (self.bytes(), job.data_bytes),
            Some(redrive) => (self.counts().sum(), redrive.before.failed),
        }
    }

    /// True if all items of the attempt have an outcome.
    pub fn account_for_all(&self, job: &Job) -> bool {
        job.split.done && self.counts().sum() == job.items_dispatched()
    }

    /// Bytes of the committed chunks.
    pub fn bytes(&self) -> u64 {
        self.open.iter().fold(self.totals.bytes, |sum, tally| sum + tally.bytes)
    }

    /// Usage of the runs of the attempt's chunks, as far as it is stored.
    pub fn usage(&self) -> Usage {
        self.open.iter().fold(self.totals.usage, |sum, tally| sum + tally.usage)
    }

    /// The open tallies whose chunks may have been sent, as far as other tallies are concerned.
    pub fn due(&self, job: &Job) -> impl Iterator<Item = &Tally> {
        let held_up: BTreeSet<u32> =
            self.open.iter().filter(|tally| !tally.is_half_done()).map(|tally| tally.number).collect();
        let waits = move |number| job.awaited_tally(number).is_some_and(|awaited| held_up.contains(&awaited));
        self.open.iter().filter(move |tally| !waits(tally.number))
    }

    /// Chunks that are counted and not committed. Those that wait until the chunk `max_concurrency` places before them
    /// is committed are not in flight: so of the chunks with the same number modulo `max_concurrency` at most one is.
    /// Neither are those of a tally that waits until the one `tallies_ahead` places before it is half done. A width of
    /// 0, which no request may have, counts as 1.
    pub fn in_flight(&self, job: &Job) -> u64 {
        match job.max_concurrency {
            None => self.due(job).map(|tally| u64::from(tally.expected.saturating_sub(tally.done))).sum(),
            Some(width) => self.heads(width).len() as u64,
        }
    }

    /// The chunks inside a window of this width: of those with the same number modulo the width the first that is not
    /// committed.
    pub fn heads(&self, width: u32) -> BTreeSet<u64> {
        let mut chains = BTreeSet::new();
        let open = self.open.iter().flat_map(Tally::uncommitted);
        open.filter(|number| chains.insert(number % u64::from(width.max(1)))).collect()
    }

    pub fn last_moved(&self) -> Option<Timestamp> {
        self.open.iter().map(|tally| tally.at).chain(self.totals.at).max()
    }
}

/// The open tallies as a few ranges, so that one stuck tally does not make every read include all tallies behind it.
fn open_ranges(totals: &Totals, tallies: u32) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for number in (0..tallies).filter(|number| !totals.closed.contains(number)) {
        match ranges.last_mut() {
            Some(range) if number - range.end < RANGE_GAP => range.end = number + 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// The progress in whole percent, at most 99: only the end of the job is 100.
///
/// Within an attempt it never decreases, because `committed` only grows and `whole` never changes.
fn percent(committed: u64, whole: u64) -> u8 {
    if whole == 0 {
        return 0;
    }
    let share = u128::from(committed) * 100 / u128::from(whole);
    u8::try_from(share.min(99)).unwrap_or(99)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::model::ids::RunId;
    use crate::model::tally::{Mark, MarkKind};
    use crate::text::{Chunk, ChunkMode, Position};
    use proptest::prelude::*;

    /// A tally of so many chunks of one item, of which these are committed.
    fn tally(number: u32, chunks: usize, committed: &[usize]) -> Tally {
        let start = Position { offset: 0, row: 1 };
        let chunk = Chunk { offset: 0, length: 1, first_row: 1, items: 1, mode: ChunkMode::Items };
        let mut tally = Tally::of(1, number, start, &vec![chunk; chunks], Timestamp::UNIX_EPOCH);
        for place in committed {
            tally.marks[*place] = Some(Mark { kind: MarkKind::Clean, run: RunId::from_bytes([1; 7]) });
            tally.done += 1;
        }
        tally
    }

    #[test]
    fn chunks_are_in_flight_until_they_are_committed() {
        let counters = |open| Counters { totals: Totals::default(), open, at_work: None };
        let in_flight =
            |counters: &Counters, max_concurrency| counters.in_flight(&Job { max_concurrency, ..fixtures::job() });
        assert_eq!(in_flight(&counters(Vec::new()), None), 0);
        let open = counters(vec![tally(0, 64, &[0, 2]), tally(2, 5, &[0, 1, 2, 3])]);
        assert_eq!(in_flight(&open, None), 63);
        // Chunks 1 and 3 to 63, and chunk 132: those before them in their chain are committed, those behind them wait.
        assert_eq!(in_flight(&open, Some(1)), 1);
        assert_eq!(in_flight(&open, Some(0)), 1, "a stored width that cannot be is no panic");
        assert_eq!(in_flight(&open, Some(3)), 3);
        assert_eq!(in_flight(&open, Some(1000)), 63);
        let mut skipped = tally(0, 64, &[0]);
        skipped.done = skipped.expected;
        assert_eq!(in_flight(&counters(vec![skipped]), Some(3)), 0, "the rest of a tally is skipped without marks");
        let last = counters(vec![tally(2, 5, &[0, 1, 2, 3])]);
        assert_eq!((in_flight(&last, Some(3)), in_flight(&last, None)), (1, 1), "the other chains have no chunks left");
    }

    #[test]
    fn a_tally_that_waits_for_another_one_is_not_in_flight() {
        let counters = |open| Counters { totals: Totals::default(), open, at_work: None };
        let in_flight =
            |counters: &Counters, ahead| counters.in_flight(&Job { tallies_ahead: Some(ahead), ..fixtures::job() });
        let open = counters(vec![tally(3, 64, &[0]), tally(4, 64, &[]), tally(5, 64, &[]), tally(6, 7, &[])]);
        assert_eq!(in_flight(&open, 1), 63, "tally 4 waits for tally 3, and so on");
        assert_eq!(in_flight(&open, 2), 63 + 64);
        assert_eq!(in_flight(&open, 3), 63 + 64 + 64);
        assert_eq!(in_flight(&open, 16), 63 + 64 + 64 + 7);
        assert_eq!(in_flight(&open, 0), 63, "a stored number that cannot be is no panic");
        let closed = counters(vec![tally(0, 1, &[0]), tally(1, 5, &[])]);
        assert_eq!(in_flight(&closed, 1), 5, "the tally before is closed, though not folded");
        let half: Vec<usize> = (0..32).collect();
        let half = counters(vec![tally(0, 64, &half), tally(1, 64, &half[..31]), tally(2, 64, &[])]);
        assert_eq!(in_flight(&half, 1), 32 + 33, "half of tally 0 is done, less of tally 1");
    }

    #[test]
    fn only_an_ended_job_has_100_percent() {
        assert_eq!(percent(0, 0), 0);
        assert_eq!(percent(0, 1000), 0);
        assert_eq!(percent(9, 1000), 0);
        assert_eq!(percent(370, 1000), 37);
        assert_eq!(percent(1000, 1000), 99);
        assert_eq!(percent(u64::MAX, u64::MAX), 99);
    }

    proptest! {
        #[test]
        fn percent_never_decreases_while_chunks_are_committed(
            chunks in prop::collection::vec(1..5_000_000_u64, 1..200),
            order in any::<prop::sample::Index>(),
        ) {
            let data_bytes = chunks.iter().sum();
            let first = order.index(chunks.len());
            let (mut committed, mut shown) = (0, 0);
            for bytes in chunks[first..].iter().chain(&chunks[..first]) {
                committed += bytes;
                let now = percent(committed, data_bytes);
                prop_assert!(now >= shown && now <= 99);
                shown = now;
            }
            prop_assert_eq!(shown, 99);
        }
    }
}
