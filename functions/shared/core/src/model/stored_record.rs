//! A record as it is stored: what the last job wrote, and what was there before that job. So the job can be undone.
//!
//! ```text
//! latest    { version, fields }     what the last job wrote: its last row with this key
//! history   before                  the record under it: that of the job before
//!           undo                    the undo that has hidden the latest: then `before` is what readers see
//!           earlier                 who wrote it before that: an undo of theirs names the record as kept
//! ```
//!
//! A record that has expired is none: the store says which, see [`Expired`].
//!
//! The order of writes does not matter: a row of an earlier job that comes late goes under the latest, and shows once
//! the job above it is undone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ids::JobGuid;
use super::records::{DatasetRecord, Expired, NotAVersion, RecordVersion, Writer};

/// The most jobs that a record names in [`History::earlier`].
pub const EARLIER_MAX: usize = 8;

/// A record with its history.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredRecord {
    pub latest: DatasetRecord,
    /// Number of changes of the history since the latest was written.
    pub revision: u32,
    /// `None` if its writer keeps none.
    pub history: Option<History>,
    /// What had expired when it was read.
    pub expired: Expired,
}

/// What was there before the job that wrote the latest, and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// The job that it belongs to. If a job that keeps no history has written since, the rest is only a trace.
    #[serde(with = "as_text")]
    pub of: Writer,
    pub before: Before,
    /// True if the job has removed the record: the latest stands for no record.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub removes: bool,
    /// The last undo that changed what readers see.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub undo: Option<Undone>,
    /// The jobs that wrote or undid it before, the latest first: at most [`EARLIER_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub earlier: Vec<JobGuid>,
}

/// The record before a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Before {
    /// There was none.
    Nothing,
    /// A prune has removed it.
    Removed {
        #[serde(with = "as_text")]
        version: RecordVersion,
    },
    Record {
        #[serde(with = "as_text")]
        version: RecordVersion,
        fields: Map<String, Value>,
    },
    /// There was one, but both together are more than a row can hold.
    TooLarge,
}

/// What an undo did to the latest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undone {
    pub by: JobGuid,
    /// The job that it undoes.
    pub of: JobGuid,
    /// True if readers see what was there before. False if that was undone again.
    pub hides: bool,
}

/// What the undo of a job finds in a record.
#[derive(Clone, PartialEq, Debug)]
pub enum Undoing {
    /// It is to be stored like this.
    Reverse(Box<StoredRecord>),
    /// This undo has reversed it.
    Reversed,
    /// It stays, because of this job that wrote it or undid it later, or that keeps too little to undo it.
    Kept(JobGuid),
    /// The job has not written it.
    NotOurs,
}

/// What the deletion of its dataset makes of a record.
#[derive(Clone, PartialEq, Debug)]
pub enum Deleting {
    /// It is to be removed.
    Remove,
    /// A later job has written it, and it is to be stored like this: without what was there before.
    Forget(Box<StoredRecord>),
    /// A later job has written it, and it holds nothing of before.
    Later,
}

/// The state of a record: a write names the one that it replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Revision {
    pub version: RecordVersion,
    pub number: u32,
}

/// What a prune makes of a record.
#[derive(Clone, PartialEq, Debug)]
pub enum Pruning {
    /// It is to be stored like this: readers see none.
    Remove(Box<StoredRecord>),
    /// This prune has removed it.
    Removed,
    /// It stays: the import has it, or a later job has written it. Or there is none.
    NotMissing,
}

impl Before {
    /// The same, without what has expired.
    fn unless(&self, expired: Expired) -> Self {
        match self {
            Self::Record { version, .. } | Self::Removed { version } if expired.is(version.by) => Self::Nothing,
            before => before.clone(),
        }
    }
}

impl History {
    fn new(of: Writer, before: Before, earlier: Vec<JobGuid>) -> Self {
        Self { of, before, removes: false, undo: None, earlier }
    }

    /// True if readers see what was there before.
    pub fn hides(&self) -> bool {
        self.undo.is_some_and(|undo| undo.hides)
    }
}

impl StoredRecord {
    /// The first record of its key.
    pub fn first(latest: DatasetRecord) -> Self {
        let history = History::new(latest.version.by, Before::Nothing, Vec::new());
        Self { latest, revision: 0, history: Some(history), expired: Expired::default() }
    }

    /// True if it has expired, with all that was there before.
    pub fn is_expired(&self) -> bool {
        self.expired.is(self.latest.version.by)
    }

    pub const fn at(&self) -> Revision {
        Revision { version: self.latest.version, number: self.revision }
    }

    /// The record that readers see.
    pub fn visible(self) -> Option<DatasetRecord> {
        let expired = self.expired;
        let visible = self.unless_hidden()?;
        (!expired.is(visible.version.by)).then_some(visible)
    }

    fn unless_hidden(self) -> Option<DatasetRecord> {
        match self.own_history() {
            None => Some(self.latest),
            Some(history) if !history.hides() => (!history.removes).then_some(self.latest),
            Some(_) => match self.history?.before {
                Before::Record { version, fields } => Some(DatasetRecord { key: self.latest.key, version, fields }),
                Before::Nothing | Before::Removed { .. } | Before::TooLarge => None,
            },
        }
    }

    /// The same after this row was written to it. `None` if nothing changes.
    pub fn with(&self, row: &DatasetRecord) -> Option<Self> {
        let (stored, new) = (self.latest.version, row.version);
        if self.is_expired() {
            return (new.by > stored.by).then(|| Self::first(row.clone()));
        }
        if new.by > stored.by {
            return Some(self.under(row.clone()));
        }
        if new.by < stored.by {
            return self.over(row);
        }
        let replaced =
            || Self { latest: row.clone(), revision: 0, history: self.history.clone(), expired: self.expired };
        (new.row > stored.row).then(replaced)
    }

    /// The row of a later job above this record.
    fn under(&self, latest: DatasetRecord) -> Self {
        let of = latest.version.by;
        let mut earlier = self.actors();
        earlier.truncate(EARLIER_MAX);
        let before = match self.own_history() {
            Some(history) if history.hides() => history.before.unless(self.expired),
            Some(history) if history.removes => Before::Removed { version: self.latest.version },
            _ => Before::Record { version: self.latest.version, fields: self.latest.fields.clone() },
        };
        Self { latest, revision: 0, history: Some(History::new(of, before, earlier)), expired: self.expired }
    }

    /// The row of an earlier job below this record.
    fn over(&self, row: &DatasetRecord) -> Option<Self> {
        let history = self.own_history()?;
        let by = row.version.by;
        if self.expired.is(by) {
            return None;
        }
        let is_later = match &history.before {
            Before::Nothing => !history.earlier.contains(&by.job_guid),
            // A job that was here and is not now is undone, or was replaced by a later one.
            Before::Record { version, .. } if version.by == by => version.row < row.version.row,
            Before::Record { version, .. } | Before::Removed { version } => {
                *version < row.version && !history.earlier.contains(&by.job_guid)
            }
            Before::TooLarge => false,
        };
        if !is_later {
            return None;
        }
        let mut history = history.clone();
        history.before = Before::Record { version: row.version, fields: row.fields.clone() };
        if !history.earlier.contains(&by.job_guid) {
            history.earlier.insert(0, by.job_guid);
            history.earlier.truncate(EARLIER_MAX);
        }
        Some(self.changed(history))
    }

    /// What the undo `by` of this job does to it.
    pub fn undo(&self, job: JobGuid, by: JobGuid) -> Undoing {
        let writer = self.latest.version.by.job_guid;
        let Some(history) = self.own_history() else {
            let is_there = self.is_of(job) && !self.is_expired();
            return if is_there { Undoing::Kept(writer) } else { Undoing::NotOurs };
        };
        match history.undo {
            Some(undo) if undo.by == by => Undoing::Reversed,
            // Others have changed it after that.
            _ if history.earlier.contains(&by) => Undoing::Reversed,
            _ if self.is_expired() => Undoing::NotOurs,
            // It takes over from an undo that did not come to its end.
            Some(undo) if undo.of == job => self.reversed(history, Undone { by, ..undo }),
            // An undo is undone.
            Some(undo) if undo.by == job => self.reversed(history, Undone { by, of: job, hides: !undo.hides }),
            None if writer == job => self.reversed(history, Undone { by, of: job, hides: true }),
            undo if self.is_of(job) => Undoing::Kept(undo.map_or(writer, |undo| undo.by)),
            _ => Undoing::NotOurs,
        }
    }

    fn reversed(&self, history: &History, undo: Undone) -> Undoing {
        if undo.hides && history.before == Before::TooLarge {
            return Undoing::Kept(self.latest.version.by.job_guid);
        }
        let mut earlier: Vec<JobGuid> =
            history.undo.iter().map(|undo| undo.by).chain(history.earlier.iter().copied()).collect();
        earlier.truncate(EARLIER_MAX);
        let history = History { undo: Some(undo), earlier, ..history.clone() };
        Undoing::Reverse(Box::new(self.changed(history)))
    }

    /// What the deletion of its dataset by this job makes of it.
    pub fn delete(&self, by: Writer) -> Deleting {
        match &self.history {
            _ if self.latest.version.by < by || self.is_expired() => Deleting::Remove,
            Some(history @ History { before: Before::Record { version, .. } | Before::Removed { version }, .. })
                if version.by < by =>
            {
                Deleting::Forget(Box::new(self.changed(History { before: Before::Nothing, ..history.clone() })))
            }
            _ => Deleting::Later,
        }
    }

    /// True if this import has not got it: readers see a record that was written before the import was created.
    pub fn is_missing_in(&self, import: Writer) -> bool {
        let by = self.latest.version.by;
        // A prune after this import was undone.
        let is_prune = by.job_created_ms == import.job_created_ms && self.own_history().is_some_and(|of| of.removes);
        (by < import || is_prune) && !self.is_of(import.job_guid) && self.clone().visible().is_some()
    }

    /// What the prune `by` after this import makes of it. Its place is right above the import: a row of a later job goes on
    /// top, and one of an earlier job below, whenever it comes.
    pub fn prune(&self, import: Writer, by: JobGuid) -> Pruning {
        let version = RecordVersion { by: Writer { job_guid: by, ..import }, row: 0 };
        if self.is_of(by) {
            return Pruning::Removed;
        }
        if !self.is_missing_in(import) {
            return Pruning::NotMissing;
        }
        let mut pruned = self.under(DatasetRecord { key: self.latest.key.clone(), version, fields: Map::new() });
        if let Some(history) = &mut pruned.history {
            history.removes = true;
        }
        Pruning::Remove(Box::new(pruned))
    }

    fn changed(&self, history: History) -> Self {
        let (latest, revision) = (self.latest.clone(), self.revision.saturating_add(1));
        Self { latest, revision, history: Some(history), expired: self.expired }
    }

    /// True if this job has written it or undone it, as far as its history tells.
    pub fn is_of(&self, job: JobGuid) -> bool {
        self.actors().contains(&job)
    }

    /// The jobs that wrote it or undid it, the latest first.
    fn actors(&self) -> Vec<JobGuid> {
        let writer = self.latest.version.by.job_guid;
        let trace = self.history.iter().flat_map(|history| {
            let of = history.of.job_guid;
            let undo = history.undo.map(|undo| undo.by);
            undo.into_iter().chain((of != writer).then_some(of)).chain(history.earlier.iter().copied())
        });
        // An undo is later than the job that it hides.
        let mut actors: Vec<JobGuid> = trace.collect();
        let at = usize::from(self.own_history().is_some_and(|history| history.undo.is_some()));
        actors.insert(at, writer);
        actors
    }

    /// Its history, if that is the one of the latest.
    fn own_history(&self) -> Option<&History> {
        self.history.as_ref().filter(|history| history.of == self.latest.version.by)
    }
}

/// The stored form. It sorts as text in the order of versions; of one version, the later revision is greater.
impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => write!(f, "{}", self.version),
            number => write!(f, "{}#{number:010}", self.version),
        }
    }
}

impl FromStr for Revision {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        if text.matches('#').count() < 3 {
            return Ok(Self { version: text.parse()?, number: 0 });
        }
        let (version, number) = text.rsplit_once('#').ok_or(NotAVersion)?;
        Ok(Self { version: version.parse()?, number: number.parse().map_err(|_| NotAVersion)? })
    }
}

/// Versions in their stored form.
pub(super) mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
