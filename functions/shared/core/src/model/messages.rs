//! The messages between the functions. Each is small, says of which kind it is, carries the counts that its receiver
//! needs, and may arrive any number of times in any order.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::files::{FileRow, LayoutId, Part, PartFile, PartText};
use crate::model::ids::{FileGuid, JobGuid, Owner, RunId};
use crate::model::job::{Job, Priority};
use crate::model::tally::ChunkAddress;
use crate::text::{Chunk, ChunkMode};

/// On the jobs queue: split this job, from the position in its row on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "split", rename_all = "camelCase")]
pub struct SplitMessage {
    pub job_guid: JobGuid,
    /// Its attempt. A message of a past attempt is acknowledged and has no effect.
    pub attempt: u32,
    /// Number of tallies that the job row counted when the message was sent. If the message becomes a dead letter, this
    /// shows whether the split has made progress since.
    pub tallies: u32,
    /// The epoch of the job by then. A dead letter of an earlier one does not stop the job. While a resend is due, a
    /// message of an earlier one is dropped.
    #[serde(rename = "pauses")]
    pub epoch: u32,
    /// The owner of the job: the group of the message.
    pub owner: Owner,
    /// The priority of the job, which decides on its queue.
    #[serde(default)]
    pub priority: Priority,
}

impl SplitMessage {
    /// The message that resumes the split of this job.
    pub fn of(job: &Job) -> Self {
        Self {
            job_guid: job.job_guid,
            attempt: job.attempt,
            tallies: job.split.tallies,
            epoch: job.epoch,
            owner: job.owner.clone(),
            priority: job.priority,
        }
    }
}

/// On the items, the isolate or the lanes queue: process the items of this chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "chunk", rename_all = "camelCase")]
pub struct ChunkMessage {
    pub job_guid: JobGuid,
    /// The owner of the job: the group of the message.
    pub owner: Owner,
    #[serde(flatten)]
    pub address: ChunkAddress,
    /// The epoch of the job when the message was sent. One of an earlier epoch is dropped.
    #[serde(rename = "pauses")]
    pub epoch: u32,
    /// Its bytes in the file, and its number of items.
    pub chunk: Chunk,
    /// The history of the message, which tells its receiver how to begin.
    #[serde(default)]
    pub delivery_mode: DeliveryMode,
    /// The job's `maxConcurrency` when the message was sent: how many of its chunks may be in flight at once. The run
    /// that commits this chunk sends the one that waits for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_concurrency: Option<u32>,
    /// The object that holds the chunk's text, if it is not a range of the upload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<StoredText>,
    /// Where it comes from, in a job over many files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<Box<Part>>,
    /// The job's type, which decides on its lane.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_type: Option<String>,
    /// The priority of the job, which decides on its queue.
    #[serde(default)]
    pub priority: Priority,
    /// The lane on which it was sent, counted from 0; `None` beside the lanes. See [`lanes`](crate::model::lanes).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lane: Option<u32>,
}

impl ChunkMessage {
    /// The first message of a chunk of this job: a range of the upload.
    pub fn of(job: &Job, address: ChunkAddress, chunk: Chunk) -> Self {
        Self {
            job_guid: job.job_guid,
            owner: job.owner.clone(),
            address,
            epoch: job.epoch,
            chunk,
            delivery_mode: DeliveryMode::Fresh,
            max_concurrency: job.max_concurrency,
            stored: None,
            part: None,
            job_type: Some(job.job_type.clone()),
            priority: job.priority,
            lane: None,
        }
    }

    /// True if its bytes are a range of an object that was not made for it.
    pub fn is_range(&self) -> bool {
        let is_of_file = match (&self.part, self.file()) {
            (_, Some(file)) => matches!(file.text, PartText::Object { .. }),
            (Some(_), None) => false,
            (None, None) => self.stored.is_none(),
        };
        self.address.attempt == 1 && is_of_file && matches!(self.chunk.mode, ChunkMode::Items)
    }

    /// How its items are read, in a job over many files.
    pub fn layout(&self) -> Option<&LayoutId> {
        self.part.as_ref()?.layout.as_ref()
    }

    /// Its file, in the first attempt of a job over many files.
    pub fn file(&self) -> Option<&PartFile> {
        self.part.as_ref()?.file.as_ref()
    }

    /// The place of this row in its file, in a job over many files.
    pub fn place(&self, row: u64) -> Option<FileRow> {
        self.part.as_ref()?.place(row)
    }

    /// Its bytes in its file.
    pub fn range(&self) -> Range<u64> {
        match self.file() {
            Some(file) => file.range(&self.chunk),
            None => self.chunk.offset..self.chunk.end(),
        }
    }

    /// The weight of the chunk in the job's percent: bytes of the upload.
    pub fn weight(&self) -> u64 {
        self.stored.map_or(self.chunk.length, |stored| stored.weight)
    }
}

impl Job {
    /// True if this message is dropped: the job is paused, or was since it was sent, and the resend sends the chunk.
    /// Otherwise both messages might run at once.
    pub const fn drops(&self, message: &ChunkMessage) -> bool {
        self.is_paused() || message.epoch < self.epoch
    }
}

/// The text of a chunk that is not a range of the upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredText {
    /// The run of the split that stored it.
    pub by: RunId,
    /// Its weight in the job's percent: the approximate number of bytes of the upload that it comes from.
    pub weight: u64,
}

/// The history of a chunk's message, which tells its receiver how to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Sent by the split. Its first receiver may begin without a read.
    #[default]
    Fresh,
    /// The chunk may be done, at least in part: its receiver first reads the tally and the checkpoint.
    Recovered,
    /// The chunk's message became a dead letter: its items are noted in the checkpoint before they run.
    Isolated,
}

/// On the completions queue: every item of this attempt is accounted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "completion", rename_all = "camelCase")]
pub struct CompletionMessage {
    pub job_guid: JobGuid,
    /// Its attempt. A message of a past attempt is acknowledged and has no effect.
    pub attempt: u32,
    /// The composition to resume, as the job row named it when the message was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composing: Option<RunId>,
    /// The owner of the job: the group of the message.
    pub owner: Owner,
}

impl CompletionMessage {
    /// The message that ends the current attempt of this job.
    pub fn of(job: &Job) -> Self {
        Self { job_guid: job.job_guid, attempt: job.attempt, composing: job.composing, owner: job.owner.clone() }
    }
}

/// On the fetches queue: fetch this file, or what is missing of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename = "fetch", rename_all = "camelCase")]
pub struct FetchMessage {
    pub file_guid: FileGuid,
    /// The owner of the upload: the group of the message.
    pub owner: Owner,
}

/// A message that is grouped by its owner, so that one busy owner cannot starve the others.
pub trait Grouped {
    fn owner(&self) -> &Owner;

    /// The job or the file that it is about, which names its trace.
    fn about(&self) -> Uuid;
}

/// A message about a job.
pub trait OfJob: Grouped {
    fn job_guid(&self) -> JobGuid;
}

/// A message whose queue depends on the priority of its job.
pub trait Prioritized: OfJob {
    fn priority(&self) -> Priority;
}

impl Prioritized for SplitMessage {
    fn priority(&self) -> Priority {
        self.priority
    }
}

impl Prioritized for ChunkMessage {
    fn priority(&self) -> Priority {
        self.priority
    }
}

macro_rules! grouped {
    ($($message:ty),+) => {
        $(impl Grouped for $message {
            fn owner(&self) -> &Owner {
                &self.owner
            }

            fn about(&self) -> Uuid {
                self.job_guid.0
            }
        }

        impl OfJob for $message {
            fn job_guid(&self) -> JobGuid {
                self.job_guid
            }
        })+
    };
}

grouped!(SplitMessage, ChunkMessage, CompletionMessage);

impl Grouped for FetchMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn about(&self) -> Uuid {
        self.file_guid.0
    }
}
