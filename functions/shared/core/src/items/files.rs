//! The files of a job over many, in order, each with the counts of its rows.
//!
//! The rows of a file follow each other in the job. So its counts are the sums of its chunks in the first attempt; of a
//! tally that lies within one file, its row in the table has them. After a redrive, its failed rows are those of the job
//! between its first and its last one. A walk can stop within a file, and goes on with the sums so far.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::items::failed::FailedItems;
use crate::items::file_list::{FileLines, ListLine};
use crate::items::stored_job::StoredJob;
use crate::items::tally_pages::TallyPages;
use crate::items::{chunk_index, run_output};
use crate::model::chunk_index::ChunkIndex;
use crate::model::files::{FileCounts, FileList, FilePosition, FileProblem, FileState, PartText};
use crate::model::ids::JobGuid;
use crate::model::tally::{ChunkAddress, Counts, MarkKind, Tally};
use crate::ports::{Objects, PortError};
use crate::text::Chunk;

/// A place in the files of a job, for a reader of their counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesAt {
    pub file: FilePosition,
    /// The next row.
    pub row: u64,
    /// The rows of this file before it, and those of them that have an outcome.
    #[serde(default)]
    pub rows: u64,
    #[serde(default)]
    pub counts: Counts,
}

impl FilesAt {
    /// Before the first file.
    pub const START: Self = Self::before(FilePosition { line: 0, number: 0, begun: None }, 1);

    const fn before(file: FilePosition, row: u64) -> Self {
        Self { file, row, rows: 0, counts: Counts { succeeded: 0, failed: 0, skipped: 0 } }
    }
}

/// Result of a step of the walk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NextFile {
    File(FileCounts),
    /// The caller wants no more to be read now. The walk can go on at [`JobFiles::at`].
    Suspended,
    End,
}

/// A walk through the files of a job.
pub struct JobFiles {
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    lines: FileLines,
    /// The present file.
    line: Option<ListLine>,
    pages: TallyPages,
    /// Tallies whose chunks are not read.
    tallies: VecDeque<Tally>,
    /// The chunk index of the last of them, if it is read.
    last: Option<(u32, ChunkIndex)>,
    /// Chunks that are read and not counted.
    chunks: VecDeque<FileChunks>,
    /// The failed rows, if there was a redrive.
    failed: Option<FailedRows>,
    at: FilesAt,
    /// True if the split goes on: the last file may have more chunks.
    is_splitting: bool,
    /// True if the split ended before the end of the files.
    is_cut_short: bool,
    objects_read: usize,
}

/// Chunks of a file, in the first attempt.
struct FileChunks {
    /// The place of the file.
    number: u64,
    rows: u64,
    /// The row behind them.
    end: u64,
    counts: Counts,
    problem: Option<FileProblem>,
}

impl JobFiles {
    /// The files of this job from this place on, as they are now.
    pub async fn of(from: StoredJob<'_>, files: &FileList, at: FilesAt) -> Result<Self, PortError> {
        let (job, before) = (from.job, at.row.saturating_sub(1));
        let failed = match job.attempt {
            1 => None,
            _ => Some(FailedRows { walk: FailedItems::of(from, before).await?, rows: VecDeque::new() }),
        };
        Ok(Self {
            objects: Arc::clone(from.objects),
            job_guid: job.job_guid,
            lines: FileLines::new(Arc::clone(from.objects), files.list.clone(), at.file),
            line: None,
            pages: TallyPages::of(from, 1, before).await?,
            tallies: VecDeque::new(),
            last: None,
            chunks: VecDeque::new(),
            failed,
            at,
            is_splitting: job.attempt == 1 && !job.split.done,
            is_cut_short: job.unprocessed_from().is_some(),
            objects_read: 0,
        })
    }

    /// Where the walk goes on.
    pub const fn at(&self) -> FilesAt {
        self.at
    }

    /// Number of objects read so far.
    pub fn objects_read(&self) -> usize {
        self.objects_read + self.failed.as_ref().map_or(0, |failed| failed.walk.objects_read())
    }

    /// The next file. After each tally it asks whether to go on.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if the objects of the job have expired.
    pub async fn next(&mut self, go_on: impl Fn(&Self) -> bool) -> Result<NextFile, PortError> {
        let line = match self.line.take() {
            Some(line) => line,
            None => match self.lines.next().await? {
                Some(line) => line,
                None => return Ok(NextFile::End),
            },
        };
        let (number, mut problem) = (line.at.number, None);
        let has_later = loop {
            if self.chunks.is_empty() && !self.tallies.is_empty() && !go_on(self) {
                self.line = Some(line);
                return Ok(NextFile::Suspended);
            }
            let Some(chunks) = self.next_chunks().await? else { break false };
            if chunks.number > number {
                self.chunks.push_front(chunks);
                break true;
            }
            self.at.row = chunks.end;
            let failed = match &mut self.failed {
                Some(failed) => failed.before(chunks.end).await?,
                None => chunks.counts.failed,
            };
            // Those of files before were split since their counts were told.
            if chunks.number == number {
                self.at.rows += chunks.rows;
                let counts = Counts { failed, ..chunks.counts };
                let succeeded = if self.failed.is_some() {
                    chunks.rows.saturating_sub(failed + counts.skipped)
                } else {
                    counts.succeeded
                };
                self.at.counts += Counts { succeeded, ..counts };
                problem = problem.or(chunks.problem);
            }
        };
        let FilesAt { rows, counts, row, .. } = self.at;
        self.at = FilesAt::before(line.next, row);
        let pending = rows.saturating_sub(counts.sum());
        let is_reached = rows > 0 || has_later;
        let state = if !is_reached && self.is_splitting {
            FileState::Waiting
        } else if !is_reached && self.is_cut_short {
            FileState::Skipped
        } else if pending > 0 || (self.is_splitting && !has_later) {
            FileState::Running
        } else if self.is_cut_short && !has_later {
            FileState::CutShort
        } else {
            FileState::Done
        };
        let (Counts { succeeded, failed, skipped }, name) = (counts, line.file.name);
        Ok(NextFile::File(FileCounts { name, number, state, rows, pending, succeeded, failed, skipped, problem }))
    }

    async fn next_chunks(&mut self) -> Result<Option<FileChunks>, PortError> {
        loop {
            if let Some(chunks) = self.chunks.pop_front() {
                return Ok(Some(chunks));
            }
            if let Some(tally) = self.tallies.pop_front() {
                self.read(&tally).await?;
            } else if let Some(tallies) = self.pages.next().await? {
                self.tallies.extend(tallies);
            } else {
                return Ok(None);
            }
        }
    }

    /// Reads a tally. If it lies within one file, those behind it may do so too: of them nothing more is read.
    async fn read(&mut self, tally: &Tally) -> Result<(), PortError> {
        let index = match self.last.take_if(|(number, _)| *number == tally.number) {
            Some((_, index)) => index,
            None => self.index(tally).await?,
        };
        let file_at = |index: &ChunkIndex, place| Some(index.part(place)?.file.as_ref()?.number);
        let within = file_at(&index, 0).filter(|first| file_at(&index, u8::MAX) == Some(*first));
        let Some(number) = within.filter(|_| tally.start.row >= self.at.row) else {
            return self.read_chunks(tally, &index).await;
        };
        let problem = index.parts.iter().find_map(|part| problem_of(&part.part.file.as_ref()?.text));
        self.chunks.push_back(FileChunks { problem, ..whole(tally, number) });
        let [_, .., last] = self.tallies.make_contiguous() else { return Ok(()) };
        let last = last.clone();
        if self.last.as_ref().is_none_or(|(known, _)| *known != last.number) {
            self.last = Some((last.number, self.index(&last).await?));
        }
        if self.last.as_ref().and_then(|(_, index)| file_at(index, 0)) == Some(number) {
            let behind = self.tallies.drain(..self.tallies.len() - 1);
            self.chunks.extend(behind.map(|tally| whole(&tally, number)));
        }
        Ok(())
    }

    async fn index(&mut self, tally: &Tally) -> Result<ChunkIndex, PortError> {
        self.objects_read += 1;
        chunk_index::of(&*self.objects, self.job_guid, tally).await
    }

    async fn read_chunks(&mut self, tally: &Tally, index: &ChunkIndex) -> Result<(), PortError> {
        for (place, chunk) in (0_u8..).zip(&index.chunks) {
            let Some(file) = index.part(place).and_then(|part| part.file.as_ref()) else { continue };
            // Those that are counted.
            if chunk.first_row < self.at.row {
                continue;
            }
            let (rows, counts) = (u64::from(chunk.items), self.counts_of(tally, place, chunk).await?);
            let (number, end, problem) = (file.number, chunk.first_row + rows, problem_of(&file.text));
            self.chunks.push_back(FileChunks { number, rows, end, counts, problem });
        }
        Ok(())
    }

    /// The items of a chunk by outcome; none if it is not committed.
    async fn counts_of(&mut self, tally: &Tally, place: u8, chunk: &Chunk) -> Result<Counts, PortError> {
        let items = u64::from(chunk.items);
        let Some(mark) = tally.mark(place) else {
            return Ok(if tally.is_closed() { Counts::all_skipped(items) } else { Counts::default() });
        };
        let (failed, skipped) = match mark.kind {
            MarkKind::Clean | MarkKind::HasOutputs => (0, 0),
            MarkKind::Skipped => (0, items),
            MarkKind::HasFailed | MarkKind::Stopped => {
                self.objects_read += 1;
                let address = ChunkAddress { attempt: 1, tally: tally.number, index: place };
                let output = run_output::read(&*self.objects, self.job_guid, address, mark.run).await?;
                let end = chunk.first_row + items;
                (output.failed.len() as u64, output.skipped_from.map_or(0, |from| end.saturating_sub(from)))
            }
        };
        Ok(Counts { succeeded: items.saturating_sub(failed + skipped), failed, skipped })
    }
}

/// The chunks of a tally that lies within this file.
const fn whole(tally: &Tally, number: u64) -> FileChunks {
    let (rows, end) = (tally.items, tally.start.row + tally.items);
    FileChunks { number, rows, end, counts: tally.counts, problem: None }
}

fn problem_of(text: &PartText) -> Option<FileProblem> {
    match text {
        PartText::Unreadable(problem) => Some(problem.clone()),
        PartText::Object { .. } | PartText::Stored => None,
    }
}

/// The failed rows of a job, in order.
struct FailedRows {
    walk: FailedItems,
    /// Rows that are read and not counted.
    rows: VecDeque<u64>,
}

impl FailedRows {
    /// Number of further rows before this one.
    async fn before(&mut self, end: u64) -> Result<u64, PortError> {
        let mut count = 0;
        loop {
            while self.rows.pop_front_if(|row| *row < end).is_some() {
                count += 1;
            }
            if !self.rows.is_empty() {
                return Ok(count);
            }
            match self.walk.next().await? {
                Some(items) => self.rows.extend(items.into_iter().map(|item| item.row)),
                None => return Ok(count),
            }
        }
    }
}

impl fmt::Display for FilesAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, row, rows, counts: Counts { succeeded, failed, skipped } } = self;
        write!(f, "{}-{}-{row}-{rows}-{succeeded}-{failed}-{skipped}", file.line, file.number)
    }
}

impl FromStr for FilesAt {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let read = |number: &str| number.parse::<u64>().ok().filter(|number| *number <= MOST).ok_or(());
        let numbers: Vec<u64> = text.split('-').map(read).collect::<Result<_, _>>()?;
        let [line, number, row, rows, succeeded, failed, skipped] = numbers[..] else { return Err(()) };
        let counts = Counts { succeeded, failed, skipped };
        let file = FilePosition { line, number, begun: None };
        Ok(Self { file, row: row.max(1), rows, counts })
    }
}

/// More than any number in a cursor. Sums of a few of them fit.
const MOST: u64 = u64::MAX / 1024;
