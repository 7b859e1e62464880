//! One run over a chunk: from its bytes to the outcome of each item.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use rowmill_core::ids::JobGuid;
use rowmill_core::ports::{Clock, Entropy, PortError};
use rowmill_core::processor::{Item, ItemError, ItemProcessor};
use rowmill_core::segment::FailedItem;
use rowmill_core::tally::Counts;
use rowmill_core::text::{Chunk, ChunkMode, RawItem, Record, read_items};

use crate::prepared::Prepared;
use crate::watch::JobWatch;

/// How a run is bounded.
#[derive(Clone, Copy, Debug)]
pub struct RunLimits {
    /// How often an item whose error is transient is tried again before the chunk goes back to the queue.
    pub transient_retries: u32,
    /// The first wait before such a retry; each further one is twice as long.
    pub backoff: Duration,
    /// How long before the invocation's time limit no further batch of items is begun.
    pub margin: Duration,
}

/// What a run found out about every item of its chunk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ChunkOutcome {
    /// All items of the chunk by how they ended.
    pub counts: Counts,
    /// Those that failed, in row order.
    pub failed: Vec<FailedItem>,
    /// Whether the run ended early because the job was stopped.
    pub stopped: bool,
}

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file is not the one any more that was cut; says how so.
    #[error("the uploaded file {0}")]
    SourceChanged(&'static str),
    /// The very bytes that were cut into so many items are read as another number of them: an error of Rowmill's own.
    #[error("the chunk is read as {found} items where {expected} were cut")]
    OtherItems {
        /// Items in the message.
        expected: u32,
        /// Items found.
        found: usize,
    },
    /// Items kept failing for a passing reason, or the time is up: the chunk goes back to the queue.
    #[error("the chunk goes back to the queue: {0}")]
    TryAgain(String),
    /// A port is unavailable.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// A run over one chunk.
pub struct ChunkRun<'a> {
    /// The job.
    pub job_guid: JobGuid,
    /// Its spec and processor.
    pub prepared: &'a Prepared,
    /// The chunk.
    pub chunk: &'a Chunk,
    /// The invocation's time limit.
    pub deadline: Timestamp,
    /// Whether the job has been stopped meanwhile.
    pub watch: &'a JobWatch,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Chance, for jitter.
    pub entropy: &'a dyn Entropy,
    /// The bounds.
    pub limits: RunLimits,
}

impl ChunkRun<'_> {
    /// Runs every item. `bytes` is the chunk's range of the file.
    ///
    /// # Errors
    /// See [`RunError`]; nothing is counted then.
    pub async fn run(&self, bytes: &Bytes) -> Result<ChunkOutcome, RunError> {
        let mut outcome = ChunkOutcome::default();
        let processor = &self.prepared.processor;
        let mut batch = Batch::with_capacity(processor.batch_items().max(1));
        let dialect = &self.prepared.spec.head.dialect;
        let items: Vec<RawItem> = read_items(self.chunk, bytes, dialect, &self.prepared.columns).collect();
        if items.len() != self.chunk.items as usize {
            return Err(RunError::OtherItems { expected: self.chunk.items, found: items.len() });
        }
        for raw in items {
            batch.push(self.job_guid, raw, &mut outcome);
            if batch.is_full() {
                self.run_batch(&mut batch, &mut outcome).await?;
            }
        }
        self.run_batch(&mut batch, &mut outcome).await?;
        outcome.failed.sort_by_key(|failed| failed.row);
        Ok(outcome)
    }

    async fn run_batch(&self, batch: &mut Batch<'_>, outcome: &mut ChunkOutcome) -> Result<(), RunError> {
        let (items, sources) = batch.take();
        if items.is_empty() {
            return Ok(());
        }
        if self.watch.job(self.job_guid).await?.stop.is_some() {
            outcome.stopped = true;
            outcome.counts.skipped += items.len() as u64;
            return Ok(());
        }
        if self.clock.now() + self.limits.margin >= self.deadline {
            return Err(RunError::TryAgain("its time is up".into()));
        }
        for (result, source) in self.process(items).await?.into_iter().zip(sources) {
            match result {
                Ok(()) => outcome.counts.succeeded += 1,
                Err(error) => {
                    outcome.counts.failed += 1;
                    outcome.failed.push(failed_item(&source, error.code, error.message, error.column));
                }
            }
        }
        Ok(())
    }

    /// Processes the items, those with transient errors again until there are none.
    async fn process(&self, items: Vec<Item>) -> Result<Vec<Result<(), ItemError>>, RunError> {
        let processor: &Arc<dyn ItemProcessor> = &self.prepared.processor;
        let mut settled: Vec<Option<Result<(), ItemError>>> = vec![None; items.len()];
        let mut open: Vec<usize> = (0..items.len()).collect();
        let mut items_open = items;
        for retry in 0.. {
            let results = processor.process_batch(&items_open).await;
            if results.len() != items_open.len() {
                let message = format!("the processor answered {} of {} items", results.len(), items_open.len());
                return Err(RunError::TryAgain(message));
            }
            let (mut still_open, mut still_items, mut last_error) = (Vec::new(), Vec::new(), None);
            for ((place, item), result) in open.into_iter().zip(items_open).zip(results) {
                match result {
                    Err(error) if error.transient => {
                        still_open.push(place);
                        still_items.push(item);
                        last_error = Some(error);
                    }
                    result => settled[place] = Some(result.map(drop)),
                }
            }
            let Some(error) = last_error else { break };
            let wait = self.backoff(retry);
            if retry >= self.limits.transient_retries || self.clock.now() + wait + self.limits.margin >= self.deadline {
                return Err(RunError::TryAgain(format!("{} items still fail: {error}", still_open.len())));
            }
            self.clock.sleep(wait).await;
            (open, items_open) = (still_open, still_items);
        }
        Ok(settled.into_iter().flatten().collect())
    }

    fn backoff(&self, retry: u32) -> Duration {
        let doubled = self.limits.backoff.saturating_mul(2_u32.saturating_pow(retry));
        doubled.mul_f64(0.5 + self.entropy.fraction() / 2.0)
    }
}

/// The outcome of a chunk that is a single record too long to be looked at: its bytes are not even read.
pub fn too_long(chunk: &Chunk, max_record_bytes: u64) -> ChunkOutcome {
    debug_assert_eq!(chunk.mode, ChunkMode::TooLong);
    let message = format!("the row takes {} bytes, more than the {max_record_bytes} a row may have", chunk.length);
    let failed = FailedItem {
        row: chunk.first_row,
        offset: chunk.offset,
        length: chunk.length,
        code: "row_too_long".into(),
        message,
        column: None,
        raw: None,
        raw_base64: None,
    };
    ChunkOutcome { counts: Counts { failed: 1, ..Counts::default() }, failed: vec![failed], stopped: false }
}

/// Where an item came from, kept in case it fails.
struct Source<'a> {
    row: u64,
    offset: u64,
    raw: &'a [u8],
}

/// Items on their way to the processor.
struct Batch<'a> {
    items: Vec<Item>,
    sources: Vec<Source<'a>>,
    capacity: usize,
}

impl<'a> Batch<'a> {
    const fn with_capacity(capacity: usize) -> Self {
        Self { items: Vec::new(), sources: Vec::new(), capacity }
    }

    /// Takes a well-formed item in; a malformed one is counted as failed at once.
    fn push(&mut self, job_guid: JobGuid, raw: RawItem<'a>, outcome: &mut ChunkOutcome) {
        let RawItem { row, offset, raw, record } = raw;
        let source = Source { row, offset, raw };
        match record {
            Ok(record) => self.add(job_guid, source, record),
            Err(bad) => {
                outcome.counts.failed += 1;
                outcome.failed.push(failed_item(&source, bad.code.to_string(), bad.message, bad.column));
            }
        }
    }

    fn add(&mut self, job_guid: JobGuid, source: Source<'a>, record: Record) {
        self.items.push(Item { job_guid, row: source.row, record });
        self.sources.push(source);
    }

    fn is_full(&self) -> bool {
        self.items.len() >= self.capacity
    }

    fn take(&mut self) -> (Vec<Item>, Vec<Source<'a>>) {
        (std::mem::take(&mut self.items), std::mem::take(&mut self.sources))
    }
}

fn failed_item(source: &Source<'_>, code: String, message: String, column: Option<String>) -> FailedItem {
    let text = std::str::from_utf8(source.raw).ok();
    FailedItem {
        row: source.row,
        offset: source.offset,
        length: source.raw.len() as u64,
        code,
        message,
        column,
        raw: text.map(str::to_owned),
        raw_base64: text.is_none().then(|| rowmill_core::segment::to_base64(source.raw)),
    }
}
