//! The items of a job that failed, in row order, a page at a time.
//!
//! A tally's marks say which runs won their chunks and whether they left failed items; only those runs' segments are
//! read. Tallies, chunks and rows run in the same order, so a page holds one segment at a time and nothing is sorted.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rowmill_core::job::Job;
use rowmill_core::ports::{JobStore, Objects, PortError};
use rowmill_core::segment::{FailedItem, failed_items_key, read_segment};
use rowmill_core::tally::{CHUNKS_PER_TALLY, ChunkAddress, MarkKind, Tally};

/// How many tallies are read at once.
const TALLIES_READ: u32 = 64;

/// The longest page, in bytes of its JSON. A function may answer 6 MB, in which every quote of this text is escaped once more.
const PAGE_MAX_BYTES: usize = 2_500_000;

/// How many segments a page looks into at most, so that a page of very few items still comes soon.
const SEGMENTS_READ: usize = 200;

/// The use case and the ports it works through.
pub struct FailedItems {
    /// The jobs' rows.
    pub jobs: Arc<dyn JobStore>,
    /// Where failed items are.
    pub objects: Arc<dyn Objects>,
}

/// A page of failed items.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemsPage {
    /// The items in row order.
    pub items: Vec<FailedItem>,
    /// Where the next page goes on; none where this is the last, as far as the job has got.
    pub next: Option<ItemsCursor>,
}

/// Where a page goes on: in the chunk of this tally and place, behind this row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ItemsCursor {
    tally: u32,
    index: u8,
    row: u64,
}

impl fmt::Display for ItemsCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.tally, self.index, self.row)
    }
}

/// A text that is not a cursor.
#[derive(Debug, thiserror::Error)]
#[error("not a cursor that this API gave out")]
pub struct InvalidCursor;

impl FromStr for ItemsCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split('-');
        let mut next = || numbers.next().ok_or(InvalidCursor);
        let cursor = Self {
            tally: next()?.parse().map_err(|_| InvalidCursor)?,
            index: next()?.parse().map_err(|_| InvalidCursor)?,
            row: next()?.parse().map_err(|_| InvalidCursor)?,
        };
        if numbers.next().is_some() { Err(InvalidCursor) } else { Ok(cursor) }
    }
}

impl FailedItems {
    /// The failed items behind `after`, at most `limit` of them.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn page(&self, job: &Job, after: ItemsCursor, limit: usize) -> Result<ItemsPage, PortError> {
        let mut page = Page { items: Vec::new(), limit, segments_left: SEGMENTS_READ, bytes_left: PAGE_MAX_BYTES };
        let mut first = after.tally;
        while first < job.split.tallies {
            let next = first.saturating_add(TALLIES_READ).min(job.split.tallies);
            for tally in self.jobs.tallies(job.job_guid, job.attempt, first..next).await? {
                if let Some(next) = self.read_tally(job, &tally, after, &mut page).await? {
                    return Ok(ItemsPage { items: page.items, next: Some(next) });
                }
            }
            first = next;
        }
        Ok(ItemsPage { items: page.items, next: None })
    }

    /// Adds the failed items of a tally; where the page goes on if it is full.
    async fn read_tally(
        &self,
        job: &Job,
        tally: &Tally,
        after: ItemsCursor,
        page: &mut Page,
    ) -> Result<Option<ItemsCursor>, PortError> {
        let first = if tally.number == after.tally { usize::from(after.index) } else { 0 };
        for place in first..CHUNKS_PER_TALLY {
            let index = u8::try_from(place).unwrap_or(u8::MAX);
            let Some(mark) = tally.mark(index).filter(|mark| mark.kind == MarkKind::HasObjects) else { continue };
            if page.segments_left == 0 {
                return Ok(Some(ItemsCursor { tally: tally.number, index, row: 0 }));
            }
            page.segments_left -= 1;
            let address = ChunkAddress { attempt: tally.attempt, tally: tally.number, index };
            let bytes = self.objects.read(&failed_items_key(job.job_guid, address, mark.run)).await?;
            let items = read_segment(&bytes).map_err(|error| PortError::invalid("reading failed items", error))?;
            let behind = if (tally.number, index) == (after.tally, after.index) { after.row } else { 0 };
            for item in items.into_iter().filter(|item| item.row > behind) {
                if !page.takes(item)? {
                    let row = page.items.last().map_or(0, |last| last.row);
                    return Ok(Some(ItemsCursor { tally: tally.number, index, row }));
                }
            }
        }
        Ok(None)
    }
}

struct Page {
    items: Vec<FailedItem>,
    limit: usize,
    segments_left: usize,
    bytes_left: usize,
}

impl Page {
    /// Adds an item, unless the page is full. An item that no page can hold is shown without its text.
    fn takes(&mut self, mut item: FailedItem) -> Result<bool, PortError> {
        let size = |item: &FailedItem| {
            let json = serde_json::to_vec(item);
            json.map(|json| json.len()).map_err(|error| PortError::invalid("showing a failed item", error))
        };
        let mut bytes = size(&item)?;
        if bytes > PAGE_MAX_BYTES {
            (item.raw, item.raw_base64) = (None, None);
            bytes = size(&item)?;
        }
        if self.items.len() == self.limit || bytes > self.bytes_left {
            return Ok(false);
        }
        self.bytes_left -= bytes;
        self.items.push(item);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_it_was_written() {
        let cursor = ItemsCursor { tally: 12, index: 63, row: 409_600 };
        assert_eq!(cursor.to_string().parse::<ItemsCursor>().unwrap(), cursor);
        for wrong in ["", "1-2", "1-2-3-4", "a-b-c", "1-300-2", "-1-2-3"] {
            assert!(wrong.parse::<ItemsCursor>().is_err(), "{wrong}");
        }
    }
}
