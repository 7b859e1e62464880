//! Cuts the failed items into chunks for the next attempt.
//!
//! The failed items of an ended attempt do not change, and neither do their corrections. So these chunks are the same
//! in every run, wherever cutting is resumed, like those of a file.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use rowmill_core::items::failed::FailedItems;
use rowmill_core::items::input::{Correction, RedriveItem, read_corrections};
use rowmill_core::items::layouts;
use rowmill_core::items::stored_job::StoredJob;
use rowmill_core::model::causes::Selection;
use rowmill_core::model::chunk_index::IndexedPart;
use rowmill_core::model::files::{LayoutId, Part};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::{Redrive, Stop};
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::ports::{Clock, Objects, PortError};
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Position};

use crate::cut::{CutError, CutTally};

/// The failed items of a job, being cut.
pub struct RedriveCut {
    clock: Arc<dyn Clock>,
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    /// Layouts that this run has stored again, so that they live as long as the items.
    stored: HashSet<LayoutId>,
    items: FailedItems,
    /// Items that are read and not in a chunk yet, each with the number of the source chunk, in reading order.
    read: VecDeque<(u64, FailedItem)>,
    /// Their bytes.
    read_bytes: u64,
    /// Number of source chunks read.
    sources_read: u64,
    /// The source chunks of the tally that is being cut.
    sources: Sources,
    /// The corrections of failed rows in row order, if there is a corrected file.
    corrections: Option<VecDeque<Correction>>,
    /// The failed rows that are processed, if not all are.
    selection: Option<Selection>,
    limits: ChunkLimits,
    ready: CutTally,
    at_end: bool,
}

/// The most source chunks of one tally. If few items failed in each chunk, gathering 64 full chunks would take longer
/// than an invocation.
const SOURCES_MAX: u32 = 1000;

/// The source chunks of a tally. They depend only on the items, so a tally ends at the same source chunk wherever
/// cutting was resumed.
#[derive(Default)]
struct Sources {
    count: u32,
    last: Option<u64>,
    exhausted: bool,
}

impl Sources {
    /// True if an item of this source chunk still belongs to the tally.
    const fn take(&mut self, source: u64) -> bool {
        if matches!(self.last, Some(last) if last == source) {
            return true;
        }
        if self.count == SOURCES_MAX {
            self.exhausted = true;
            return false;
        }
        (self.count, self.last) = (self.count + 1, Some(source));
        true
    }
}

/// The least bytes of an item's line, so that enough items for a chunk's byte limit always fill it.
fn text_bytes(item: &FailedItem) -> u64 {
    let bytes = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() as u64);
    bytes(&item.raw) + bytes(&item.raw_base64)
}

/// How this item is read, in a job over many files. The items of a chunk are all read in the same way.
fn part_of(item: &FailedItem) -> Option<Part> {
    item.file.as_ref().map(|file| Part { layout: file.layout.clone(), file: None })
}

impl RedriveCut {
    /// Begins after the row that `start` names.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if the failed items have expired.
    pub async fn new(
        from: StoredJob<'_>,
        clock: Arc<dyn Clock>,
        redrive: &Redrive,
        limits: ChunkLimits,
        start: Position,
    ) -> Result<Self, PortError> {
        let after = start.offset;
        let corrections = match &redrive.corrected {
            None => None,
            Some(key) => {
                let corrections = read_corrections(&from.objects.read(key).await?)?;
                Some(corrections.into_iter().filter(|correction| correction.row > after).collect())
            }
        };
        Ok(Self {
            objects: Arc::clone(from.objects),
            job_guid: from.job.job_guid,
            stored: HashSet::new(),
            clock,
            items: FailedItems::before(from, after).await?,
            read: VecDeque::new(),
            read_bytes: 0,
            sources_read: 0,
            sources: Sources::default(),
            corrections,
            selection: redrive.selection.clone(),
            limits,
            ready: CutTally::default(),
            at_end: false,
        })
    }

    /// The next 64 chunks. Fewer at the end, none after it.
    pub async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        self.sources = Sources::default();
        while self.ready.chunks.len() < CHUNKS_PER_TALLY && !self.sources.exhausted {
            while !self.fills_a_chunk() && !self.at_end {
                if self.clock.now() >= time_limit {
                    return Err(CutError::OutOfTime);
                }
                match self.items.next().await {
                    Ok(Some(items)) => {
                        self.sources_read += 1;
                        self.read_bytes += items.iter().map(text_bytes).sum::<u64>();
                        self.read.extend(items.into_iter().map(|item| (self.sources_read, item)));
                    }
                    Ok(None) => self.at_end = true,
                    Err(PortError::NotFound) => return Err(self.expired()),
                    Err(error) => return Err(CutError::Port(error)),
                }
            }
            if self.read.is_empty() {
                break;
            }
            self.cut_chunk().map_err(CutError::Port)?;
        }
        let ready = std::mem::take(&mut self.ready);
        self.keep_layouts(&ready).await?;
        Ok(ready)
    }

    /// Stores the layouts of these chunks again: objects live for a time from when they were stored.
    async fn keep_layouts(&mut self, tally: &CutTally) -> Result<(), CutError> {
        for layout in tally.parts.iter().filter_map(|part| part.part.layout.as_ref()) {
            if self.stored.contains(layout) {
                continue;
            }
            match layouts::keep(&*self.objects, self.job_guid, layout).await {
                Ok(()) => self.stored.insert(layout.clone()),
                Err(PortError::NotFound) => return Err(self.expired()),
                Err(error) => return Err(CutError::Port(error)),
            };
        }
        Ok(())
    }

    /// True if the next chunk has reached the limit of items or bytes.
    fn fills_a_chunk(&self) -> bool {
        let items = self.read.len() >= self.limits.max_items.max(1) as usize;
        items || (!self.read.is_empty() && self.read_bytes >= self.limits.max_bytes)
    }

    /// Makes one chunk of the items read: as many as the limits allow, at least one.
    fn cut_chunk(&mut self) -> Result<(), PortError> {
        // Offsets in different files have no order.
        let place = |item: &FailedItem| (if item.file.is_some() { 0 } else { item.offset }, item.row);
        let first = self.read.front().map_or((0, 0), |(_, item)| place(item));
        let (mut input, mut items) = (Vec::new(), 0);
        let part = self.read.front().and_then(|(_, item)| part_of(item));
        while items < self.limits.max_items.max(1)
            && (items == 0 || (input.len() as u64) < self.limits.max_bytes)
            && let Some((_, failed)) =
                self.read.pop_front_if(|(source, item)| part_of(item) == part && self.sources.take(*source))
        {
            self.read_bytes -= text_bytes(&failed);
            self.ready.last_row = failed.row;
            let item = self.with_correction(failed);
            serde_json::to_writer(&mut input, &item)
                .map_err(|error| PortError::invalid("splitting a redrive", error))?;
            input.push(b'\n');
            items += 1;
        }
        if items == 0 {
            return Ok(());
        }
        if let Some(part) = part
            && self.ready.parts.last().is_none_or(|last| last.part != part)
        {
            let first = u8::try_from(self.ready.chunks.len()).unwrap_or(u8::MAX);
            self.ready.parts.push(IndexedPart { first, part });
        }
        let (offset, first_row) = first;
        let length = input.len() as u64;
        self.ready.chunks.push(Chunk { offset, length, first_row, items, mode: ChunkMode::Items });
        self.ready.inputs.push(input.into());
        Ok(())
    }

    fn with_correction(&mut self, failed: FailedItem) -> RedriveItem {
        if self.selection.as_ref().is_some_and(|selection| !selection.has(&failed)) {
            return RedriveItem { failed, corrected: None, left_out: true };
        }
        let Some(corrections) = &mut self.corrections else {
            return RedriveItem { failed, corrected: None, left_out: false };
        };
        while corrections.front().is_some_and(|correction| correction.row < failed.row) {
            corrections.pop_front();
        }
        let correction = corrections.pop_front_if(|correction| correction.row == failed.row);
        RedriveItem { failed, left_out: correction.is_none(), corrected: correction.map(|correction| correction.text) }
    }

    fn expired(&self) -> CutError {
        let how = "or the stored list of its failed items expired";
        CutError::Stopped(Stop::source_changed(how, None, self.clock.now()))
    }
}
