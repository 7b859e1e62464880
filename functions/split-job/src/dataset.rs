//! The records of a dataset, cut into chunks of JSON lines.
//!
//! A dataset may change while it is read, so these chunks are what was found, and not the same ones for every run that cuts
//! them. What counts is the tally that was put first, with the chunks of the run that put it; whoever goes on does so behind
//! its last record.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::chunk_index::RecordPosition;
use rowmill_core::ports::{Clock, PortError, RECORD_PARTITIONS, RecordStore, StoredRecord};
use rowmill_core::tally::CHUNKS_PER_TALLY;
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Position};

use crate::cut::{CutError, CutTally, StoredCut};

/// How many records are asked for at once. A page of DynamoDB has 1 MB at most, whatever is asked for.
const PAGE_RECORDS: usize = 1000;

/// A dataset, being cut.
pub struct DatasetCut {
    records: Arc<dyn RecordStore>,
    clock: Arc<dyn Clock>,
    dataset: String,
    limits: ChunkLimits,
    /// Where the next chunk begins.
    start: Position,
    /// Behind the last record of the last chunk.
    at: RecordPosition,
    /// Behind the last record read.
    read_to: RecordPosition,
    /// Records read and not yet in a chunk, with their partitions.
    read: VecDeque<(u32, StoredRecord)>,
    /// How many partitions are behind the last chunk, or in it.
    partitions_weighed: u32,
}

impl DatasetCut {
    /// Begins behind this record, which lies before this row.
    pub fn new(
        records: Arc<dyn RecordStore>,
        clock: Arc<dyn Clock>,
        dataset: String,
        limits: ChunkLimits,
        start: Position,
        at: RecordPosition,
    ) -> Self {
        let (read_to, partitions_weighed) = (at.clone(), at.partition);
        Self { records, clock, dataset, limits, start, at, read_to, read: VecDeque::new(), partitions_weighed }
    }

    /// Goes on behind this record instead: another run's chunks count.
    pub fn go_on_behind(&mut self, at: RecordPosition, start: Position) {
        (self.start, self.partitions_weighed) = (start, at.partition);
        self.read.clear();
        (self.read_to, self.at) = (at.clone(), at);
    }

    /// The next 64 chunks; fewer at the end, none behind it.
    ///
    /// # Errors
    /// See [`CutError`].
    pub async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        let (mut tally, mut stored) = (CutTally::default(), StoredCut::default());
        while tally.chunks.len() < CHUNKS_PER_TALLY {
            while self.read.len() < self.limits.max_items.max(1) as usize && !self.is_read() {
                if self.clock.now() >= time_limit {
                    return Err(CutError::OutOfTime);
                }
                self.read_page().await.map_err(CutError::Port)?;
            }
            if self.read.is_empty() {
                break;
            }
            self.cut_chunk(&mut tally, &mut stored).map_err(CutError::Port)?;
        }
        stored.next = Some(self.at.clone());
        tally.stored = Some(stored);
        Ok(tally)
    }

    const fn is_read(&self) -> bool {
        self.read_to.partition >= RECORD_PARTITIONS
    }

    async fn read_page(&mut self) -> Result<(), PortError> {
        let RecordPosition { partition, after } = &self.read_to;
        let partition = *partition;
        let page = self.records.page(&self.dataset, partition, after.as_deref(), PAGE_RECORDS).await?;
        self.read.extend(page.records.into_iter().map(|record| (partition, record)));
        self.read_to = match page.next {
            Some(key) => RecordPosition { partition, after: Some(key) },
            None => RecordPosition { partition: partition + 1, after: None },
        };
        Ok(())
    }

    fn cut_chunk(&mut self, tally: &mut CutTally, stored: &mut StoredCut) -> Result<(), PortError> {
        let (mut lines, mut items) = (Vec::new(), 0);
        while items < self.limits.max_items.max(1)
            && (items == 0 || (lines.len() as u64) < self.limits.max_bytes)
            && let Some((partition, record)) = self.read.pop_front()
        {
            serde_json::to_writer(&mut lines, &record)
                .map_err(|error| PortError::invalid("writing a record", error))?;
            lines.push(b'\n');
            items += 1;
            self.at = RecordPosition { partition, after: Some(record.key) };
        }
        let (Position { offset, row: first_row }, length) = (self.start, lines.len() as u64);
        tally.chunks.push(Chunk { offset, length, first_row, items, mode: ChunkMode::Items });
        tally.inputs.push(lines.into());
        self.start = Position { offset: offset + length, row: first_row + u64::from(items) };
        // A partition is done with the chunk that its last record is in.
        let done = self.read.front().map_or(self.read_to.partition, |(partition, _)| *partition);
        stored.weights.push(u64::from(done - self.partitions_weighed));
        self.partitions_weighed = done;
        Ok(())
    }
}
