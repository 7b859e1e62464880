//! Reads the first records of a text, by the cutter and the item reader of a job.

use std::sync::Arc;

use rowmill_api::preview::RowProblem;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::Item;
use rowmill_core::text::{
    CharsetHint, Chunk, ChunkCutter, ChunkLimits, Head, Position, RawItem, UnterminatedQuote, read_items,
};
use rowmill_formats::FirstText;

use super::shown::Shown;

/// Number of bytes cut at once. Cutting stops when there are enough rows.
const CUT_BYTES: usize = 16 * 1024;

/// The beginning of a text, and how it is read.
pub struct Reading<'a> {
    pub text: &'a FirstText,
    pub head: &'a Head,
    pub hint: CharsetHint,
    /// Only the longest record matters.
    pub limits: ChunkLimits,
}

/// Records that were found, and what comes after them.
struct Cut {
    records: Vec<Chunk>,
    /// True if the text ends behind them.
    at_end: bool,
    /// Why there are no more.
    quote: Option<UnterminatedQuote>,
}

impl Reading<'_> {
    /// The first `rows` records, as far as they are in the text.
    pub fn first_rows(&self, rows: usize) -> Shown {
        let Cut { records, at_end, quote } = self.cut(rows);
        let mut shown = Shown::new(&self.head.columns);
        shown.complete = at_end && records.len() <= rows && quote.is_none();
        for item in self.read(&records[..records.len().min(rows)]) {
            if !shown.add(item.row, item.record) {
                return shown;
            }
        }
        if let (Some(quote), true) = (quote, records.len() < rows) {
            let problem = RowProblem { code: "unterminated_quote".to_owned(), message: quote.to_string() };
            shown.add_problem(quote.row, problem);
        }
        shown
    }

    /// The first `rows` records that can be read, as items of a job.
    pub fn items(&self, rows: usize, job_guid: JobGuid) -> Vec<Item> {
        let mut records = self.cut(rows).records;
        records.truncate(rows);
        let well_formed = self.read(&records).filter_map(|item| Some((item.row, item.record.ok()?)));
        well_formed.map(|(row, record)| Item { job_guid, row, record }).collect()
    }

    /// Reads these chunks of one record each.
    fn read(&self, records: &[Chunk]) -> impl Iterator<Item = RawItem<'_>> {
        let columns: Arc<[String]> = self.head.columns.clone().into();
        records.iter().filter_map(move |chunk| {
            read_items(chunk, self.bytes_of(chunk), &self.head.dialect, &columns).with_hint(self.hint).next()
        })
    }

    /// Each record as a chunk of its own, one more than `rows` at least if there are as many.
    fn cut(&self, rows: usize) -> Cut {
        let start = Position { offset: self.head.data_start, row: 1 };
        let mut cutter = ChunkCutter::new(&self.head.dialect, ChunkLimits { max_items: 1, ..self.limits }, start);
        let mut records = Vec::new();
        let data =
            usize::try_from(start.offset).ok().and_then(|start| self.text.bytes.get(start..)).unwrap_or_default();
        for piece in data.chunks(CUT_BYTES) {
            cutter.push(piece, &mut records);
            if records.len() > rows {
                return Cut { records, at_end: false, quote: None };
            }
        }
        let ended = cutter.finish(&mut records);
        if self.text.whole {
            return Cut { records, at_end: true, quote: ended.err() };
        }
        // The last record goes on behind this text, unless a line ends here.
        if ended.is_ok() && !data.ends_with(b"\n") {
            records.pop();
        }
        Cut { records, at_end: false, quote: None }
    }

    fn bytes_of(&self, chunk: &Chunk) -> &[u8] {
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.text.bytes.len());
        &self.text.bytes[place(chunk.offset)..place(chunk.offset + chunk.length)]
    }
}
