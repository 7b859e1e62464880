//! The messages between the functions. Each is small, carries what its receiver accounts with, and may arrive any number
//! of times in any order.

use serde::{Deserialize, Serialize};

use crate::model::ids::{JobGuid, Owner, RunId};
use crate::model::job::Job;
use crate::model::tally::ChunkAddress;
use crate::text::Chunk;

/// On the jobs queue: cut the file of this job, from wherever the job row says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Its attempt; a message of another attempt is acknowledged and forgotten.
    pub attempt: u32,
    /// How many tallies the job row counted when the message was sent. Should it become a dead letter, that tells whether
    /// the split has got any further since.
    pub tallies: u32,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
}

impl SplitMessage {
    /// The message that has the split of this job go on from where it is.
    pub fn of(job: &Job) -> Self {
        Self { job_guid: job.job_guid, attempt: job.attempt, tallies: job.split.tallies, owner: job.owner.clone() }
    }
}

/// On the items queue: process the items of this chunk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
    /// Which chunk of the job.
    #[serde(flatten)]
    pub address: ChunkAddress,
    /// Where its bytes are, and how many items it accounts for.
    pub chunk: Chunk,
    /// What came before this message.
    #[serde(default, rename = "handling")]
    pub delivery_mode: DeliveryMode,
    /// How many chunks of the job may be in flight at once, if there is a bound: whoever commits this chunk sends the one
    /// so many places further.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_concurrency: Option<u32>,
    /// The object that holds the chunk's text, where it is not a range of the upload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stored: Option<StoredText>,
}

impl ChunkMessage {
    /// What the chunk counts in the job's percent: bytes of the upload.
    pub fn weight(&self) -> u64 {
        self.stored.map_or(self.chunk.length, |stored| stored.weight)
    }
}

/// The text of a chunk that is not a range of the upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StoredText {
    /// The run of the split that stored it, whose object counts.
    pub by: RunId,
    /// How many bytes of the upload it comes from, about; these are what the job's percent counts.
    pub weight: u64,
}

/// What came before a chunk's message, and so how its receiver begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Nothing: sent when the chunk was cut. Its first receiver may begin without looking.
    #[default]
    Fresh,
    /// The chunk may be done in part, or whole: tally and checkpoint are read first.
    Recovered,
    /// The chunk's message became a dead letter: its items are run one at a time, each noted in the checkpoint before.
    Isolated,
}

/// On the completions queue: every item of this attempt is accounted for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionMessage {
    /// The job.
    pub job_guid: JobGuid,
    /// Its attempt; a message of another attempt is acknowledged and forgotten.
    pub attempt: u32,
    /// The state of the composition to go on from, as the job's row named it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composing: Option<RunId>,
    /// Whose job it is, the group of the message.
    pub owner: Owner,
}

impl CompletionMessage {
    /// The message that has the present attempt of this job ended.
    pub fn of(job: &Job) -> Self {
        Self { job_guid: job.job_guid, attempt: job.attempt, composing: job.composing, owner: job.owner.clone() }
    }
}

/// A message and the owner it is grouped by, so that one busy owner cannot starve the others.
pub trait Grouped {
    /// Whose work it is.
    fn owner(&self) -> &Owner;
}

impl Grouped for SplitMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Grouped for ChunkMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Grouped for CompletionMessage {
    fn owner(&self) -> &Owner {
        &self.owner
    }
}
