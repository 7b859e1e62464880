//! The simulation's own records of each job: the file's rows, their chunks, and the outcomes in the winning commits.
//! They are independent of the store, so that the two can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rowmill_core::items::input::RedriveItem;
use rowmill_core::model::chunk_index::ChunkIndex;
use rowmill_core::model::files::PartText;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Tolerance;
use rowmill_core::model::tally::{ChunkAddress, Counts, Mark};
use rowmill_core::text::{Chunk, ChunkMode};

use super::files::{Kind, SimulatedFile};

/// The last outcome of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowEnd {
    Succeeded,
    /// It failed with this code.
    Failed(String),
    Skipped,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its number in the file.
    pub number: u64,
    pub kind: Kind,
    /// The code that it keeps, because the corrected file left it out.
    pub keeps: Option<String>,
}

/// A commit that won: its mark, its counts, and the rows its run output lists as failed with their codes.
pub type Committed = (Mark, Counts, Vec<(u64, String)>);

/// A tally, from its chunk index and its commits.
#[derive(Clone, Debug)]
pub struct TallyRecord {
    pub chunks: Vec<Chunk>,
    /// The rows of each chunk.
    pub rows: Vec<Vec<Row>>,
    /// The winning commit of each chunk.
    pub committed: Vec<Option<Committed>>,
    /// True if it was closed with uncommitted chunks, which are skipped.
    pub rest_skipped: bool,
}

impl TallyRecord {
    /// The tally of this chunk index, with these rows per chunk.
    pub fn new(index: ChunkIndex, rows: Vec<Vec<Row>>) -> Self {
        let committed = vec![None; index.chunks.len()];
        Self { chunks: index.chunks, rows, committed, rest_skipped: false }
    }

    pub fn items(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.items)).sum()
    }

    /// The counts that the tally must have.
    pub fn counts(&self) -> Counts {
        let mut counts = self.committed.iter().flatten().fold(Counts::default(), |sum, commit| sum + commit.1);
        if self.rest_skipped {
            counts.skipped += self.items() - counts.sum();
        }
        counts
    }

    /// The number of done chunks that the tally must have.
    pub fn done(&self) -> usize {
        match self.rest_skipped {
            true => self.chunks.len(),
            false => self.committed.iter().flatten().count(),
        }
    }

    /// True if at least half of its chunks are done.
    pub fn is_half_done(&self) -> bool {
        self.done() * 2 >= self.chunks.len()
    }

    pub fn is_closed(&self) -> bool {
        self.done() == self.chunks.len()
    }
}

pub struct JobRecord {
    pub file: Arc<SimulatedFile>,
    /// Its `maxConcurrency`: how many of its chunks may be in flight.
    pub width: Option<u32>,
    /// Number of its tallies sent ahead.
    pub ahead: Option<u32>,
    /// The tolerance that it was created with, and those that clients ask for later.
    pub tolerances: Vec<Option<Tolerance>>,
    /// Its tallies, by attempt and number.
    pub tallies: BTreeMap<(u32, u32), TallyRecord>,
    /// The outcome of each row that is accounted for.
    pub ends: BTreeMap<u64, RowEnd>,
    /// These rows by outcome.
    pub counts: Counts,
    /// Chunks of the current attempt that were sent and are not committed.
    pub in_flight: BTreeSet<u64>,
    /// Chunks whose message was sent at least once.
    pub sent: BTreeSet<ChunkAddress>,
    /// Number of invocations that failed or died while they processed a chunk.
    pub deaths: BTreeMap<ChunkAddress, u32>,
    /// The last view that was shown.
    pub shown: Shown,
    /// Attempt and percent of the last view with the items of unfinished chunks.
    pub slow: (u32, u8),
}

/// The progress in a view of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shown {
    pub attempt: u32,
    /// Items accounted for.
    pub progress: u64,
    pub percent: u8,
    pub items: u64,
    pub version: u64,
    pub epoch: u32,
}

impl JobRecord {
    /// A job that was created over this file.
    pub fn new(file: Arc<SimulatedFile>, job: &Job) -> Self {
        Self {
            file,
            width: job.max_concurrency,
            ahead: job.tallies_ahead,
            tolerances: vec![job.tolerance],
            tallies: BTreeMap::new(),
            ends: BTreeMap::new(),
            counts: Counts::default(),
            in_flight: BTreeSet::new(),
            sent: BTreeSet::new(),
            deaths: BTreeMap::new(),
            shown: Shown { attempt: 1, ..Shown::default() },
            slow: (1, 0),
        }
    }

    /// Records the outcome of a row.
    pub fn end(&mut self, row: u64, end: RowEnd) {
        *count_of(&mut self.counts, &end) += 1;
        if let Some(before) = self.ends.insert(row, end) {
            *count_of(&mut self.counts, &before) -= 1;
        }
    }

    /// True if the chunk is accounted for.
    pub fn is_done(&self, chunk: ChunkAddress) -> bool {
        let tally = self.tallies.get(&(chunk.attempt, chunk.tally));
        tally.is_some_and(|tally| {
            tally.rest_skipped || tally.committed.get(usize::from(chunk.index)).is_some_and(Option::is_some)
        })
    }
}

fn count_of<'a>(counts: &'a mut Counts, end: &RowEnd) -> &'a mut u64 {
    match end {
        RowEnd::Succeeded => &mut counts.succeeded,
        RowEnd::Failed(_) => &mut counts.failed,
        RowEnd::Skipped => &mut counts.skipped,
    }
}

/// The rows of the chunks of a first attempt, as the `csv` crate reads them.
pub fn rows_of_file(file: &SimulatedFile, index: &ChunkIndex) -> Result<Vec<Vec<Row>>, String> {
    let (mut offset, mut row, mut chunks) = (index.start.offset, index.start.row, Vec::new());
    for chunk in &index.chunks {
        if (chunk.offset, chunk.first_row) != (offset, row) || chunk.mode != ChunkMode::Items {
            return Err(format!("{chunk:?} does not begin where the one before ends, at byte {offset}, row {row}"));
        }
        let bytes = usize::try_from(offset).ok().zip(usize::try_from(offset + chunk.length).ok());
        let bytes = bytes.and_then(|(start, end)| file.bytes.get(start..end)).ok_or("the chunk ends after the file")?;
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
        let found = reader.byte_records().count() as u64;
        if found != u64::from(chunk.items) {
            return Err(format!("{chunk:?} has {found} records"));
        }
        let numbers = row..row + found;
        let rows = numbers.map(|number| {
            let kind = file.rows.get(usize::try_from(number - 1).unwrap_or(usize::MAX));
            kind.map(|kind| Row { number, kind: *kind, keeps: None }).ok_or(format!("there is no row {number}"))
        });
        chunks.push(rows.collect::<Result<_, _>>()?);
        (offset, row) = (offset + chunk.length, row + found);
    }
    if (index.end.offset, index.end.row) != (offset, row) {
        return Err(format!("the index ends at {:?}, its last chunk at byte {offset}, row {row}", index.end));
    }
    Ok(chunks)
}

/// The rows of the chunks of a first attempt over many files, as the `csv` crate reads them.
pub fn rows_of_pieces(file: &SimulatedFile, index: &ChunkIndex) -> Result<Vec<Vec<Row>>, String> {
    let (mut row, mut chunks) = (index.start.row, Vec::new());
    for (place, chunk) in (0..).zip(&index.chunks) {
        let part = index.part(place).and_then(|part| part.file.as_ref()).ok_or("a chunk of no file")?;
        let number = usize::try_from(part.number).unwrap_or(usize::MAX);
        let piece = file.pieces.get(number).ok_or("a chunk of an unknown file")?;
        let before: u64 = file.pieces[..number].iter().map(|piece| piece.rows).sum();
        let rows = chunk.first_row..chunk.first_row + u64::from(chunk.items);
        let (first, last) = (before + 1, before + piece.rows);
        if rows.start != row || rows.start < first || rows.end - 1 > last || part.start.row != first {
            return Err(format!("{chunk:?} does not begin at row {row}, or is not of rows {first} to {last}"));
        }
        let kinds =
            file.rows.get(rows.start as usize - 1..rows.end as usize - 1).ok_or("there are not so many rows")?;
        if let PartText::Unreadable(_) = part.text {
            if kinds != [Kind::Unreadable] {
                return Err(format!("{chunk:?} of {kinds:?} is not read"));
            }
        } else {
            let range = part.range(chunk);
            let bytes =
                piece.bytes.get(range.start as usize..range.end as usize).ok_or("the chunk ends after the file")?;
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(bytes);
            let records: Result<Vec<csv::StringRecord>, _> = reader.records().collect();
            let kind = |record: &csv::StringRecord| match record.len() {
                3 => Kind::of_cell(&record[1]),
                _ => Some(Kind::Ragged),
            };
            let found: Option<Vec<Kind>> = records.map_err(|error| error.to_string())?.iter().map(kind).collect();
            if found.as_deref() != Some(kinds) {
                return Err(format!("{chunk:?} has {found:?}, not {kinds:?}"));
            }
        }
        let row_of = |(number, kind): (u64, &Kind)| Row { number, kind: *kind, keeps: None };
        chunks.push(rows.clone().zip(kinds).map(row_of).collect());
        row = rows.end;
    }
    if index.end.row != row {
        return Err(format!("the index ends at {:?}, its last chunk at row {row}", index.end));
    }
    Ok(chunks)
}

/// The rows of a chunk of a redrive with these items.
pub fn rows_of_redrive(job: &JobRecord, items: &[RedriveItem]) -> Result<Vec<Row>, String> {
    let row = |item: &RedriveItem| {
        let number = item.failed.row;
        let Some(RowEnd::Failed(code)) = job.ends.get(&number) else {
            return Err(format!("row {number} is redriven and had not failed: {:?}", job.ends.get(&number)));
        };
        if *code != item.failed.code {
            return Err(format!("row {number} failed with {code} and is redriven as {}", item.failed.code));
        }
        let text = item.corrected.as_ref().or(item.failed.raw.as_ref());
        // A row that failed unread has no stored text to redrive.
        let Some(text) = text.filter(|_| !item.left_out) else {
            return Ok(Row { number, kind: Kind::Ragged, keeps: Some(code.clone()) });
        };
        let kind = Kind::of_row(text.as_bytes()).ok_or_else(|| format!("row {number} is redriven as {text:?}"))?;
        Ok(Row { number, kind, keeps: None })
    };
    items.iter().map(row).collect()
}
