//! The files of simulated jobs, and the expected outcome of each of their rows.

use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::job::Job;
use serde_json::{Value, json};

/// Behaviour of the item of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It succeeds.
    Good,
    /// It succeeds after this many milliseconds.
    Slow(u64),
    /// It fails with a transient error this many times, then it succeeds.
    Transient(u32),
    /// It fails permanently.
    Bad,
    /// It has too few cells.
    Ragged,
    /// It kills or hangs its process.
    Poison,
    /// It holds its thread.
    Holds,
    /// It stands for the rest of a file whose quote is never closed, in a job over many files.
    Unreadable,
}

impl Kind {
    /// The cell that stands for this kind.
    fn cell(self) -> String {
        match self {
            Self::Good | Self::Ragged | Self::Unreadable => "good".into(),
            Self::Slow(ms) => format!("slow:{ms}"),
            Self::Transient(times) => format!("transient:{times}"),
            Self::Bad => "bad".into(),
            Self::Poison => "poison".into(),
            Self::Holds => "holds".into(),
        }
    }

    /// The kind that a cell stands for.
    pub fn of_cell(cell: &str) -> Option<Self> {
        let (word, number) = cell.split_once(':').unwrap_or((cell, "0"));
        Some(match word {
            "good" => Self::Good,
            "slow" => Self::Slow(number.parse().ok()?),
            "transient" => Self::Transient(number.parse().ok()?),
            "bad" => Self::Bad,
            "poison" => Self::Poison,
            "holds" => Self::Holds,
            _ => return None,
        })
    }

    /// The kind of a row of the file, as the `csv` crate reads it.
    pub fn of_row(row: &[u8]) -> Option<Self> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(row);
        let mut records = reader.records();
        let record = records.next()?.ok()?;
        match (record.len(), records.next()) {
            (3, None) => Self::of_cell(record.get(1)?),
            (_, None) => Some(Self::Ragged),
            _ => None,
        }
    }

    /// The code that every row of this kind fails with, if it always fails.
    pub const fn code(self) -> Option<&'static str> {
        match self {
            Self::Bad => Some("bad_value"),
            Self::Ragged => Some("ragged_row"),
            Self::Unreadable => Some("unterminated_quote"),
            _ => None,
        }
    }

    /// True if a row of this kind can succeed.
    pub const fn can_succeed(self) -> bool {
        matches!(self, Self::Good | Self::Slow(_) | Self::Transient(_))
    }
}

#[derive(Clone, Debug)]
pub struct SimulatedFile {
    pub file_guid: FileGuid,
    pub owner: Owner,
    pub bytes: Vec<u8>,
    /// The kind of each row, as the `csv` crate reads them, without a row whose quote is never closed.
    pub rows: Vec<Kind>,
    /// True if the last row has a quote that is never closed.
    pub unterminated: bool,
    /// The uploads, if there are many: their rows follow each other. The first one has the guid above.
    pub pieces: Vec<Piece>,
}

/// An upload of a job over many files.
#[derive(Clone, Debug)]
pub struct Piece {
    pub file_guid: FileGuid,
    pub bytes: Vec<u8>,
    /// Number of its rows.
    pub rows: u64,
}

/// The first upload of a job.
pub fn first_file(job: &Job) -> Option<FileGuid> {
    let noted = || serde_json::from_value(job.metadata.as_ref()?.get("file")?.clone()).ok();
    job.file_guid.or_else(noted)
}

/// Number and kinds of the rows of a file.
#[derive(Clone, Copy, Debug)]
pub struct FileShape {
    pub rows_max: u64,
    /// The maximum duration of a slow row in milliseconds; 0 for no slow rows.
    pub slow_max_ms: u64,
    /// Rows in a thousand that are poison.
    pub poison_permille: u32,
    /// Rows in a thousand that hold their thread.
    pub holding_permille: u32,
    /// Rows in a thousand that fail permanently or are malformed.
    pub bad_permille: u32,
    /// Rows in a thousand that fail with a transient error.
    pub transient_permille: u32,
}

impl SimulatedFile {
    pub fn of(rng: &mut fastrand::Rng, file_guid: FileGuid, owner: Owner, shape: FileShape) -> Self {
        let end = ["\n", "\r\n"][rng.usize(0..2)];
        let count = rng.u64(0..=shape.rows_max);
        let mut text = format!("id,kind,note{end}");
        let mut kinds = Vec::new();
        for row in 1..=count {
            let kind = kind(rng, shape);
            text += &line(rng, row, kind);
            text += end;
            if rng.u8(..) < 8 {
                // A blank line is not a row.
                text += end;
            }
            kinds.push(kind);
        }
        if rng.bool() && count > 0 {
            text.truncate(text.trim_end().len());
        }
        let unterminated = rng.u8(..) < 8;
        if unterminated {
            text = format!("{}{end}{},good,\"never closed{end}1,good,x{end}", text.trim_end(), count + 1);
        }
        let file = Self { file_guid, owner, bytes: text.into_bytes(), rows: kinds, unterminated, pieces: Vec::new() };
        file.check();
        file
    }

    /// Asserts that the `csv` crate reads the rows that this file expects.
    fn check(&self) {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(&self.bytes[..]);
        let records: Vec<csv::StringRecord> = reader.records().map(|record| record.expect("it is text")).collect();
        let whole = &records[..records.len() - usize::from(self.unterminated)];
        assert_eq!(whole.len(), self.rows.len(), "the oracle knows its own file");
        for (record, kind) in whole.iter().zip(&self.rows) {
            let read = if record.len() == 3 { Kind::of_cell(&record[1]) } else { Some(Kind::Ragged) };
            assert_eq!(read, Some(*kind), "the oracle knows its own rows");
        }
    }

    /// Files that are read one after the other. Each ends in a failing row if one of its quotes is never closed; or that
    /// stops the job, if `stops`.
    pub fn many(files: Vec<Self>, stops: bool) -> Self {
        let (mut all, mut pieces, mut rows) = (files[0].clone(), Vec::new(), Vec::new());
        for Self { file_guid, bytes, rows: kinds, unterminated, .. } in files {
            let before = rows.len();
            rows.extend(kinds);
            rows.extend((unterminated && !stops).then_some(Kind::Unreadable));
            all.unterminated |= unterminated;
            pieces.push(Piece { file_guid, bytes, rows: (rows.len() - before) as u64 });
        }
        all.unterminated &= stops;
        Self { rows, pieces, ..all }
    }

    /// The uploads, with their bytes.
    pub fn uploads(&self) -> Vec<(FileGuid, Vec<u8>)> {
        match &self.pieces[..] {
            [] => vec![(self.file_guid, self.bytes.clone())],
            pieces => pieces.iter().map(|piece| (piece.file_guid, piece.bytes.clone())).collect(),
        }
    }

    /// The request that creates a job over this file.
    pub fn request(
        &self,
        job_type: &str,
        tolerance: Option<Value>,
        deadline_seconds: Option<u64>,
        width: Option<u32>,
    ) -> Value {
        json!({
            "jobType": job_type, "fileGuid": self.file_guid, "params": { "format": "csv", "delimiter": "," },
            "tolerance": tolerance, "deadlineSeconds": deadline_seconds, "maxConcurrency": width,
        })
    }
}

fn kind(rng: &mut fastrand::Rng, shape: FileShape) -> Kind {
    let roll = rng.u32(0..1000);
    let (poison, holds) = (shape.poison_permille, shape.poison_permille + shape.holding_permille);
    let bad = holds + shape.bad_permille;
    match roll {
        roll if roll < poison => Kind::Poison,
        roll if roll < holds => Kind::Holds,
        roll if roll < bad => [Kind::Bad, Kind::Ragged][rng.usize(0..2)],
        roll if roll < bad + shape.transient_permille => Kind::Transient(rng.u32(1..=6)),
        roll if roll < bad + shape.transient_permille + 100 && shape.slow_max_ms > 0 => {
            Kind::Slow(rng.u64(1..=shape.slow_max_ms))
        }
        _ => Kind::Good,
    }
}

/// A row as text, without its line ending.
fn line(rng: &mut fastrand::Rng, row: u64, kind: Kind) -> String {
    match (kind, rng.u8(..)) {
        (Kind::Ragged, roll) if roll < 128 => format!("{row},good"),
        (Kind::Ragged, _) => format!("{row},good,a,b"),
        (_, roll) if roll < 24 => format!("{row},{},\"a \"\"quoted\"\"\nnote\"", kind.cell()),
        (_, roll) if roll < 48 => format!("{row},{},\"a, b\"", kind.cell()),
        (_, roll) if roll < 64 => format!("{row},{},", kind.cell()),
        _ => format!("{row},{},x", kind.cell()),
    }
}
