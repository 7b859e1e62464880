//! Cuts the records of a dataset into chunks of JSON lines.
//!
//! A dataset may change while it is read, so two runs may cut different chunks. The tally that was put first counts,
//! with the chunks of its run. Another run resumes after its last record.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::model::chunk_index::RecordPosition;
use rowmill_core::model::records::{Dataset, DatasetRecord, RecordItem};
use rowmill_core::model::spec::KeysOf;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::ports::{Clock, KeyRange, PortError, Reading, RecordStore};
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Position};
use serde_json::{Map, Value};

use crate::cut::{CutError, CutTally, STORED_TALLY_BYTES, StoredCut};

/// Number of records requested at once. A page of DynamoDB has at most 1 MB anyway.
const PAGE_RECORDS: usize = 1000;

pub struct DatasetCut {
    records: Arc<dyn RecordStore>,
    clock: Arc<dyn Clock>,
    dataset: Dataset,
    /// If only keys are read: of which records.
    keys_of: Option<KeysOf>,
    /// The last record read that is none of these, if no chunk ends after it.
    passed: Option<(u32, String)>,
    /// Total weight of its partitions.
    weight: u64,
    limits: ChunkLimits,
    /// Start of the next chunk.
    start: Position,
    /// After the last record of the last chunk.
    at: RecordPosition,
    /// After the last record read.
    read_to: RecordPosition,
    /// Records that are read and not in a chunk yet.
    read: VecDeque<ReadRecord>,
    /// The bytes of their lines.
    read_bytes: u64,
    /// Number of partitions that end before or in the last chunk.
    partitions_weighed: u32,
}

struct ReadRecord {
    partition: u32,
    key: String,
    /// The record as a line of JSON.
    line: Vec<u8>,
}

impl DatasetCut {
    /// Begins after this record, which comes before this row. The chunks of the whole dataset weigh `weight` together.
    pub fn new(
        records: Arc<dyn RecordStore>,
        clock: Arc<dyn Clock>,
        (dataset, keys_of): (Dataset, Option<KeysOf>),
        weight: u64,
        limits: ChunkLimits,
        start: Position,
        at: RecordPosition,
    ) -> Self {
        let (read_to, partitions_weighed) = (at.clone(), at.partition);
        Self {
            records,
            clock,
            dataset,
            keys_of,
            passed: None,
            weight,
            limits,
            start,
            at,
            read_to,
            read: VecDeque::new(),
            read_bytes: 0,
            partitions_weighed,
        }
    }

    /// Resumes after this record instead, because another run's chunks count.
    pub fn go_on_behind(&mut self, at: RecordPosition, start: Position) {
        (self.start, self.partitions_weighed) = (start, at.partition);
        self.read.clear();
        self.read_bytes = 0;
        self.passed = None;
        (self.read_to, self.at) = (at.clone(), at);
    }

    /// The next 64 chunks. Fewer if they are big or the dataset ends; none after its end.
    pub async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        let (mut tally, mut stored, mut bytes) = (CutTally::default(), StoredCut::default(), 0);
        let mut is_time_up = false;
        while !is_time_up && tally.chunks.len() < CHUNKS_PER_TALLY && bytes < STORED_TALLY_BYTES {
            while !self.fills_a_chunk() && !self.is_read() {
                if self.clock.now() >= time_limit {
                    if self.keys_of.is_none() || !self.has_progress(&tally) {
                        return Err(CutError::OutOfTime);
                    }
                    is_time_up = true;
                    break;
                }
                self.read_page().await.map_err(CutError::Port)?;
            }
            if self.read.is_empty() {
                break;
            }
            self.cut_chunk(&mut tally, &mut stored);
            bytes += tally.inputs.last().map_or(0, Bytes::len);
        }
        // What is read and in no chunk is none of them.
        if self.read.is_empty() && !tally.chunks.is_empty() {
            self.at = self.read_to.clone();
        }
        stored.next = Some(self.at.clone());
        tally.stored = Some(stored);
        Ok(tally)
    }

    /// True if the next invocation can go on behind what was read. Of a long way of records that are none of them, the
    /// last one becomes an item: what is read is remembered by chunks alone.
    fn has_progress(&mut self, tally: &CutTally) -> bool {
        if self.read.is_empty()
            && tally.chunks.is_empty()
            && let Some((partition, key)) = self.passed.take()
        {
            self.push(partition, key, Map::new());
        }
        !self.read.is_empty() || !tally.chunks.is_empty()
    }

    fn push(&mut self, partition: u32, key: String, fields: Map<String, Value>) {
        let record = RecordItem { key, fields };
        // A map of JSON values is always JSON.
        let mut line = serde_json::to_vec(&record).unwrap_or_default();
        line.push(b'\n');
        self.read_bytes += line.len() as u64;
        self.read.push_back(ReadRecord { partition, key: record.key, line });
    }

    fn fills_a_chunk(&self) -> bool {
        self.read.len() >= self.limits.max_items.max(1) as usize || self.read_bytes >= self.limits.max_bytes.max(1)
    }

    const fn is_read(&self) -> bool {
        self.read_to.partition >= self.dataset.partitions
    }

    async fn read_page(&mut self) -> Result<(), PortError> {
        let RecordPosition { partition, after } = &self.read_to;
        let partition = *partition;
        // What a job has written in its last second is of that job too.
        let reading = if self.keys_of.is_some() { Reading::Latest } else { Reading::Recent };
        let keys = KeyRange::behind(after.as_deref());
        let page = self.records.page(&self.dataset, partition, keys, PAGE_RECORDS, reading).await?;
        for record in page.records {
            let is_wanted = self.keys_of.map(|keys_of| match keys_of {
                KeysOf::Stored => true,
                KeysOf::Job(job) => record.is_of(job) && !record.is_expired(),
                KeysOf::MissingIn(import) => record.is_missing_in(import),
            });
            match is_wanted {
                Some(true) => self.push(partition, record.latest.key, Map::new()),
                Some(false) => self.passed = Some((partition, record.latest.key)),
                None => {
                    if let Some(DatasetRecord { key, fields, .. }) = record.visible() {
                        self.push(partition, key, fields);
                    }
                }
            }
        }
        self.read_to = match page.next {
            Some(key) => RecordPosition { partition, after: Some(key) },
            None => RecordPosition { partition: partition + 1, after: None },
        };
        Ok(())
    }

    fn cut_chunk(&mut self, tally: &mut CutTally, stored: &mut StoredCut) {
        let (mut lines, mut items) = (Vec::new(), 0);
        while items < self.limits.max_items.max(1)
            && (items == 0 || (lines.len() as u64) < self.limits.max_bytes)
            && let Some(ReadRecord { partition, key, line }) = self.read.pop_front()
        {
            lines.extend_from_slice(&line);
            self.read_bytes -= line.len() as u64;
            items += 1;
            self.at = RecordPosition { partition, after: Some(key) };
            self.passed = None;
        }
        let (Position { offset, row: first_row }, length) = (self.start, lines.len() as u64);
        tally.chunks.push(Chunk { offset, length, first_row, items, mode: ChunkMode::Items });
        tally.inputs.push(lines.into());
        self.start = Position { offset: offset + length, row: first_row + u64::from(items) };
        // A partition ends with the chunk that holds its last record.
        let done = self.read.front().map_or(self.read_to.partition, |record| record.partition);
        stored.weights.push(self.weight_of(done) - self.weight_of(self.partitions_weighed));
        self.partitions_weighed = done;
    }

    /// Weight of the first `partitions` partitions.
    fn weight_of(&self, partitions: u32) -> u64 {
        u64::from(partitions).saturating_mul(self.weight) / u64::from(self.dataset.partitions.max(1))
    }
}
