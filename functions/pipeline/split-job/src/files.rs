//! Cuts the files of a job one after the other, as one long text.
//!
//! Each file is opened like the upload of a job: its packing, dialect and columns are detected from its first bytes. A
//! file that cannot be read, or not to its end, gives one item more, which fails and says why.
//!
//! The list of the files never changes, but a file may be replaced at any time. So two runs may cut differently, and
//! the one whose tally row was put first counts, like those of a dataset.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use jiff::Timestamp;
use rowmill_core::items::file_list::{FileLines, ListLine};
use rowmill_core::items::layouts;
use rowmill_core::model::chunk_index::IndexedPart;
use rowmill_core::model::files::{
    FileList, FilePosition, FileProblem, LayoutId, ListedFile, Part, PartFile, PartText, UnreadableFiles,
};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::{Stop, StopCode};
use rowmill_core::model::keys;
use rowmill_core::model::packing::Packing;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::CHUNKS_PER_TALLY;
use rowmill_core::model::warnings::Warning;
use rowmill_core::ports::{Clock, Objects, PortError};
use rowmill_core::text::{Chunk, ChunkLimits, ChunkMode, Position};
use rowmill_formats::{
    Limits, OpenError, Opened, ReadAhead, SourceReader, TextStream, first_bytes, open_member, open_read,
};
use serde_json::{Map, Value};

use crate::cut::{CutError, CutTally, FileCut, PlainText, STORED_TALLY_BYTES, StoredCut};
use crate::packed::PackedCut;

/// Number of files whose first bytes are read at once.
pub const FILES_AHEAD: usize = 8;

/// How files are read.
#[derive(Clone, Copy)]
pub struct FileReads {
    /// The most first bytes of a file that are read to detect its format.
    pub first_max_bytes: u64,
    pub ahead: ReadAhead,
    pub packed: Limits,
}

/// The files of a job, being cut.
pub struct FilesCut {
    objects: Arc<dyn Objects>,
    clock: Arc<dyn Clock>,
    job_guid: JobGuid,
    params: Map<String, Value>,
    limits: ChunkLimits,
    reads: FileReads,
    unreadable: UnreadableFiles,
    lines: FileLines,
    /// Files whose first bytes are being read.
    ahead: FuturesOrdered<BoxFuture<'static, (ListLine, Ahead)>>,
    open: Option<OpenFile>,
    /// The next file that is not open.
    next: FilePosition,
    /// The border after the last chunk.
    end: Position,
    /// The layouts that this run has stored.
    stored: HashSet<LayoutId>,
    /// The first warnings, each with the name of its file.
    warnings: Vec<Warning>,
    /// Why the job stops once the chunks so far are dispatched, and the place of the file that stops it.
    stop: Option<(Stop, FilePosition)>,
}

/// What is read of a file ahead.
enum Ahead {
    /// It cannot be read, as its line in the list says.
    Problem(FileProblem),
    /// Its first bytes.
    First(Result<Bytes, PortError>),
    /// Its beginning, of a file in an archive, which cannot be read without unpacking it.
    Member(Box<Result<Opened, OpenError>>),
}

/// A file that is being cut.
struct OpenFile {
    at: FilePosition,
    file: PartFile,
    key: String,
    layout: LayoutId,
    size: u64,
    /// Bytes of the file that count for the chunks so far.
    weighed: u64,
    has_chunks: bool,
    cut: TextCut,
}

impl OpenFile {
    /// Where its cut goes on. Before its first chunk it is opened again, at its first record.
    fn place(&self) -> FilePosition {
        FilePosition { begun: self.has_chunks.then_some(self.file.start), ..self.at }
    }
}

enum TextCut {
    Plain(Box<FileCut>),
    Packed(Box<PackedCut>),
}

impl FilesCut {
    /// Begins at this place of the list, before which the chunks up to the border `end` were cut.
    pub fn new(
        objects: Arc<dyn Objects>,
        clock: Arc<dyn Clock>,
        spec: &Spec,
        files: &FileList,
        (at, end): (FilePosition, Position),
        reads: FileReads,
    ) -> Self {
        Self {
            lines: FileLines::new(Arc::clone(&objects), files.list.clone(), at),
            objects,
            clock,
            job_guid: spec.job_guid,
            params: spec.params.clone(),
            limits: spec.limits,
            reads,
            unreadable: UnreadableFiles::of(&spec.params).unwrap_or_default(),
            ahead: FuturesOrdered::new(),
            open: None,
            next: at,
            end,
            stored: HashSet::new(),
            warnings: Vec::new(),
            stop: None,
        }
    }

    /// Resumes at this place instead, because another run's chunks count.
    pub fn go_on_behind(&mut self, at: FilePosition, end: Position) {
        self.lines.seek(at);
        (self.ahead, self.open, self.next, self.end, self.stop) = (FuturesOrdered::new(), None, at, end, None);
    }

    /// The next 64 chunks. Fewer if they are big, time is up or the files end; none after their end.
    pub async fn next_tally(&mut self, time_limit: Timestamp) -> Result<CutTally, CutError> {
        let (mut tally, mut bytes) = (CutTally::default(), 0);
        let mut stored = StoredCut::default();
        while tally.chunks.len() < CHUNKS_PER_TALLY && bytes < STORED_TALLY_BYTES && self.stop.is_none() {
            if self.clock.now() >= time_limit {
                if tally.chunks.is_empty() {
                    return Err(CutError::OutOfTime);
                }
                break;
            }
            let Some(mut open) = self.open.take() else {
                if self.open_next(&mut tally, &mut stored).await.map_err(CutError::Port)? {
                    continue;
                }
                break;
            };
            let most = CHUNKS_PER_TALLY - tally.chunks.len();
            let cut = match &mut open.cut {
                TextCut::Plain(cut) => cut.next(most, time_limit).await,
                TextCut::Packed(cut) => cut.next((most, STORED_TALLY_BYTES - bytes), time_limit).await,
            };
            match cut {
                Ok(cut) if cut.chunks.is_empty() => self.warn(&open),
                Ok(cut) => {
                    bytes += cut.inputs.iter().map(Bytes::len).sum::<usize>();
                    self.add(&mut open, cut, &mut tally, &mut stored);
                    self.open = Some(open);
                }
                Err(CutError::Stopped(stop)) => {
                    self.warn(&open);
                    let problem = FileProblem { code: stop.code.as_str().to_owned(), message: stop.message };
                    self.give_up_open(open, problem, &mut tally, &mut stored);
                }
                Err(CutError::Port(error)) => {
                    let problem = problem_of(OpenError::Port(error), &open.key).map_err(CutError::Port)?;
                    self.give_up_open(open, problem, &mut tally, &mut stored);
                }
                Err(CutError::OutOfTime) => {
                    self.open = Some(open);
                    if tally.chunks.is_empty() {
                        return Err(CutError::OutOfTime);
                    }
                    break;
                }
            }
        }
        if tally.chunks.is_empty()
            && let Some((stop, _)) = self.stop.take()
        {
            return Err(CutError::Stopped(stop));
        }
        stored.next_file = Some(self.place());
        tally.stored = Some(stored);
        Ok(tally)
    }

    /// Warnings for the owner of the job about the files so far, each with the name of the file.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.clone()
    }

    /// Where the next run goes on.
    fn place(&self) -> FilePosition {
        match (&self.stop, &self.open) {
            // The next run finds the same reason to stop.
            (Some((_, at)), _) => *at,
            (None, Some(open)) => open.place(),
            (None, None) => self.next,
        }
    }

    /// Opens the next file, or gives it up. Returns false at the end of the list.
    async fn open_next(&mut self, tally: &mut CutTally, stored: &mut StoredCut) -> Result<bool, PortError> {
        self.read_ahead().await?;
        let Some((ListLine { at, next, file }, ahead)) = self.ahead.next().await else { return Ok(false) };
        let begun = self.next.begun;
        self.next = next;
        let mut part = PartFile {
            name: file.name.clone(),
            number: at.number,
            start: begun.unwrap_or(self.end),
            text: PartText::Object { key: file.key.clone(), etag: file.etag.clone() },
        };
        let opened = match self.opened(&file, ahead).await? {
            Ok(opened) => opened,
            Err(problem) => {
                let rest = if begun.is_some() { 0 } else { file.size };
                self.give_up((part, rest), FilePosition { begun, ..at }, problem, tally, stored);
                return Ok(true);
            }
        };
        let layout = self.layout_of(&opened).await?;
        let start = match begun {
            Some(start) => Position {
                offset: self.end.offset.saturating_sub(start.offset),
                row: self.end.row.saturating_sub(start.row).saturating_add(1),
            },
            None => Position { offset: opened.head.data_start, row: 1 },
        };
        if opened.packing.is_some() {
            part.text = PartText::Stored;
        }
        self.open = Some(OpenFile {
            at,
            file: part,
            cut: self.cut_of(&file, &opened, start),
            key: file.key,
            layout,
            size: file.size,
            weighed: if begun.is_some() { start.offset.min(file.size) } else { 0 },
            has_chunks: begun.is_some(),
        });
        Ok(true)
    }

    /// Has the beginnings of the next files read.
    async fn read_ahead(&mut self) -> Result<(), PortError> {
        while self.ahead.len() < FILES_AHEAD
            && let Some(line) = self.lines.next().await?
        {
            let (objects, most) = (Arc::clone(&self.objects), self.reads.first_max_bytes);
            let params = self.params.clone();
            self.ahead.push_back(Box::pin(async move {
                let ListedFile { member, problem, name, .. } = &line.file;
                let object = line.file.object();
                let ahead = match (problem, member) {
                    (Some(problem), _) => Ahead::Problem(problem.clone()),
                    (None, Some(member)) => {
                        Ahead::Member(Box::new(open_member(&objects, &object, *member, name, &params).await))
                    }
                    (None, None) => Ahead::First(first_bytes(&objects, &object, most).await),
                };
                (line, ahead)
            }));
        }
        Ok(())
    }

    /// A file of which this was read ahead, or why it cannot be read.
    async fn opened(&mut self, file: &ListedFile, ahead: Ahead) -> Result<Result<Opened, FileProblem>, PortError> {
        let opened = match ahead {
            Ahead::Problem(problem) => return Ok(Err(problem)),
            Ahead::Member(opened) => *opened,
            Ahead::First(Ok(first)) => {
                let named = (file.content_type.as_deref().unwrap_or_default(), Some(file.name.as_str()));
                open_read(&self.objects, &file.object(), first, named, &self.params).await
            }
            Ahead::First(Err(error)) => Err(OpenError::Port(error)),
        };
        match opened {
            Ok(opened) => Ok(Ok(opened)),
            Err(error) => problem_of(error, &file.key).map(Err),
        }
    }

    /// Cuts an opened file from this border of its text on.
    fn cut_of(&self, file: &ListedFile, opened: &Opened, start: Position) -> TextCut {
        let how = (&opened.head.dialect, self.limits);
        let (objects, clock, FileReads { ahead, packed, .. }) =
            (Arc::clone(&self.objects), Arc::clone(&self.clock), self.reads);
        let first = &opened.first;
        match &opened.packing {
            Some(packing) => {
                let text = match packing {
                    Packing::Member { .. } if first.whole => TextStream::whole(first.bytes.clone(), file.size),
                    _ => TextStream::open(objects, &file.object(), packing, packed, ahead.reads),
                };
                TextCut::Packed(Box::new(PackedCut::new((text, packing), clock, how, start)))
            }
            None => {
                let text = match first.whole {
                    true => {
                        let rest = usize::try_from(start.offset).unwrap_or(usize::MAX).min(first.bytes.len());
                        PlainText::Whole(Some(first.bytes.slice(rest..)))
                    }
                    false => PlainText::Read(SourceReader::new(objects, file.object(), start.offset, ahead)),
                };
                TextCut::Plain(Box::new(FileCut::new(text, clock, how, start)))
            }
        }
    }

    async fn layout_of(&mut self, opened: &Opened) -> Result<LayoutId, PortError> {
        let (layout, head) =
            LayoutId::of(&opened.head).map_err(|error| PortError::invalid("naming a layout", error))?;
        if !self.stored.contains(&layout) {
            layouts::put(&*self.objects, self.job_guid, &layout, head.into()).await?;
            self.stored.insert(layout.clone());
        }
        Ok(layout)
    }

    /// Adds these chunks of the open file, with their places in the job.
    fn add(&mut self, open: &mut OpenFile, cut: CutTally, tally: &mut CutTally, stored: &mut StoredCut) {
        let part = Part { layout: Some(open.layout.clone()), file: Some(open.file.clone()) };
        push_part(tally, part);
        open.has_chunks = true;
        let weights = cut.stored.map(|stored| stored.weights);
        let start = open.file.start;
        for (place, chunk) in cut.chunks.iter().enumerate() {
            let weight = weights.as_ref().and_then(|weights| weights.get(place).copied()).unwrap_or(chunk.length);
            open.weighed = open.weighed.saturating_add(weight);
            stored.weights.push(weight);
            tally.inputs.push(cut.inputs.get(place).cloned().unwrap_or_default());
            tally.chunks.push(Chunk {
                offset: start.offset.saturating_add(chunk.offset),
                first_row: start.row.saturating_add(chunk.first_row).saturating_sub(1),
                ..*chunk
            });
        }
        if let Some(last) = tally.chunks.last() {
            self.end = Position { offset: last.end(), row: last.first_row + u64::from(last.items) };
        }
    }

    fn give_up_open(&mut self, open: OpenFile, problem: FileProblem, tally: &mut CutTally, stored: &mut StoredCut) {
        let (rest, place) = (open.size.saturating_sub(open.weighed), open.place());
        self.give_up((open.file, rest), place, problem, tally, stored);
    }

    /// Gives a file at this place up, of which this many bytes are not read: one item says why.
    fn give_up(
        &mut self,
        (mut file, rest): (PartFile, u64),
        place: FilePosition,
        problem: FileProblem,
        tally: &mut CutTally,
        stored: &mut StoredCut,
    ) {
        if self.unreadable == UnreadableFiles::Stop {
            let message = format!("{}: {}", file.name, problem.message);
            self.stop = Some((Stop::because(StopCode::UnreadableFile, message, self.clock.now()), place));
            return;
        }
        file.text = PartText::Unreadable(problem);
        push_part(tally, Part { layout: None, file: Some(file) });
        let Position { offset, row: first_row } = self.end;
        tally.chunks.push(Chunk { offset, length: 0, first_row, items: 1, mode: ChunkMode::Items });
        tally.inputs.push(Bytes::new());
        stored.weights.push(rest);
        self.end.row += 1;
    }

    fn warn(&mut self, open: &OpenFile) {
        let found = match &open.cut {
            TextCut::Plain(cut) => cut.warnings(),
            TextCut::Packed(cut) => cut.warnings(),
        };
        for Warning { code, message } in found {
            if self.warnings.iter().all(|known| known.code != code) {
                self.warnings.push(Warning { code, message: format!("{}: {message}", open.file.name) });
            }
        }
    }
}

fn push_part(tally: &mut CutTally, part: Part) {
    if tally.parts.last().is_none_or(|last| last.part != part) {
        let first = u8::try_from(tally.chunks.len()).unwrap_or(u8::MAX);
        tally.parts.push(IndexedPart { first, part });
    }
}

/// Why the file with this key cannot be read, unless the error is that of a store that may answer later.
fn problem_of(error: OpenError, key: &str) -> Result<FileProblem, PortError> {
    let problem = |code: &str, message: String| Ok(FileProblem { code: code.to_owned(), message });
    let is_of_others = keys::of_other_bucket(key).is_some();
    match error {
        OpenError::Port(PortError::NotFound) => problem(StopCode::SourceChanged.as_str(), "It is gone.".to_owned()),
        OpenError::Port(PortError::Changed) => {
            problem(StopCode::SourceChanged.as_str(), "It was replaced since the job was created.".to_owned())
        }
        OpenError::Port(PortError::Denied { .. } | PortError::Invalid { .. }) if is_of_others => {
            Ok(FileProblem::not_given_out())
        }
        OpenError::Port(error) => Err(error),
        error => problem(StopCode::UnreadableFile.as_str(), error.to_string()),
    }
}
