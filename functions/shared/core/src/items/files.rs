//! The files of a job over many, in order, each with the counts of its rows.
//!
//! The rows of a file follow each other in the job. So its counts are the sums of its chunks in the first attempt; of
//! tallies that lie within one file, only the rows of the table are read. After a redrive, its failed rows are those of
//! the job between its first and its last one.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::items::failed::FailedItems;
use crate::items::file_list::FileLines;
use crate::items::stored_job::StoredJob;
use crate::items::tally_pages::TallyPages;
use crate::items::{chunk_index, run_output};
use crate::model::chunk_index::ChunkIndex;
use crate::model::files::{FileCounts, FileList, FilePosition, FileProblem, FileState, PartText};
use crate::model::ids::JobGuid;
use crate::model::tally::{ChunkAddress, Counts, MarkKind, Tally};
use crate::ports::{Objects, PortError};
use crate::text::Chunk;

/// A place between two files of a job, for a reader of their counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilesAt {
    pub file: FilePosition,
    /// The row after the last one of the files before.
    pub row: u64,
}

impl FilesAt {
    /// Before the first file.
    pub const START: Self = Self { file: FilePosition { line: 0, number: 0, begun: None }, row: 1 };
}

/// A walk through the files of a job.
pub struct JobFiles {
    objects: Arc<dyn Objects>,
    job_guid: JobGuid,
    lines: FileLines,
    pages: TallyPages,
    /// Tallies whose chunks are not read.
    tallies: VecDeque<Tally>,
    /// Chunks that are read, and belong to no file that was returned.
    chunks: VecDeque<FileChunks>,
    /// The failed rows, if there was a redrive.
    failed: Option<FailedRows>,
    at: FilesAt,
    /// True if the split goes on: the last file may have more chunks.
    is_splitting: bool,
    is_stopped: bool,
    objects_read: usize,
}

/// Chunks of a file, in the first attempt.
#[derive(Default)]
struct FileChunks {
    /// The place of the file.
    number: u64,
    rows: u64,
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
            pages: TallyPages::of(from, 1, before).await?,
            tallies: VecDeque::new(),
            chunks: VecDeque::new(),
            failed,
            at,
            is_splitting: job.attempt == 1 && !job.split.done,
            is_stopped: job.is_stopped(),
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

    /// The next file. `None` at the end.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if the objects of the job have expired.
    pub async fn next(&mut self) -> Result<Option<FileCounts>, PortError> {
        let Some(line) = self.lines.next().await? else { return Ok(None) };
        let number = line.at.number;
        let mut all = FileChunks::default();
        let has_later = loop {
            let Some(chunks) = self.next_chunks().await? else { break false };
            if chunks.number > number {
                self.chunks.push_front(chunks);
                break true;
            }
            all.rows += chunks.rows;
            all.counts += chunks.counts;
            all.problem = all.problem.or(chunks.problem);
        };
        let FileChunks { rows, mut counts, problem, .. } = all;
        let pending = rows.saturating_sub(counts.sum());
        self.at = FilesAt { file: line.next, row: self.at.row + rows };
        if let Some(failed) = &mut self.failed {
            let failed = failed.before(self.at.row).await?;
            counts = Counts { failed, succeeded: rows.saturating_sub(failed + counts.skipped), ..counts };
        }
        let is_reached = rows > 0 || has_later;
        let state = if !is_reached && self.is_splitting {
            FileState::Waiting
        } else if !is_reached && self.is_stopped {
            FileState::Skipped
        } else if pending > 0 || (self.is_splitting && !has_later) {
            FileState::Running
        } else {
            FileState::Done
        };
        let Counts { succeeded, failed, skipped } = counts;
        let name = line.file.name;
        Ok(Some(FileCounts { name, number, state, rows, pending, succeeded, failed, skipped, problem }))
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

    /// Reads the chunks of a tally. If it lies within one file, those behind it may do so too: of them nothing more is
    /// read.
    async fn read(&mut self, tally: &Tally) -> Result<(), PortError> {
        let index = self.index(tally).await?;
        self.read_chunks(tally, &index).await?;
        let file_at = |index: &ChunkIndex, place| Some(index.part(place)?.file.as_ref()?.number);
        let (Some(number), [_, .., last]) = (file_at(&index, 0), self.tallies.make_contiguous()) else { return Ok(()) };
        let last = last.clone();
        if file_at(&index, u8::MAX) == Some(number) && file_at(&self.index(&last).await?, 0) == Some(number) {
            let within = self.tallies.drain(..self.tallies.len() - 1);
            self.chunks.extend(within.map(|tally| FileChunks {
                number,
                rows: tally.items,
                counts: tally.counts,
                problem: None,
            }));
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
            // Those of the files before.
            if chunk.first_row < self.at.row {
                continue;
            }
            let counts = self.counts_of(tally, place, chunk).await?;
            let problem = match &file.text {
                PartText::Unreadable(problem) => Some(problem.clone()),
                PartText::Object { .. } | PartText::Stored => None,
            };
            self.chunks.push_back(FileChunks { number: file.number, rows: chunk.items.into(), counts, problem });
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
        write!(f, "{}-{}-{}", self.file.line, self.file.number, self.row)
    }
}

impl FromStr for FilesAt {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Vec<u64> = text.split('-').map(str::parse).collect::<Result<_, _>>().map_err(drop)?;
        let [line, number, row] = numbers[..] else { return Err(()) };
        if row == 0 {
            return Err(());
        }
        Ok(Self { file: FilePosition { line, number, begun: None }, row })
    }
}
