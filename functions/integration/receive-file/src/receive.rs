//! Receives a dropped file: its object becomes an upload as it is, and a job is created on it.
//!
//! All names derive from the drop: the same notification, however often it arrives, finds the same upload and, by its
//! idempotency key, the same job.

use bytes::Bytes;
use create_job::create::{CreateJobError, Creator};
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job::Job;
use rowmill_core::model::keys::{INBOX, INBOX_PROBLEMS, KEY_MAX_BYTES};
use rowmill_core::model::sha256::sha256_hex;
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::{ObjectHead, PortError, expiry};

use crate::limits::FileLimits;
use crate::notes::{JobNotes, JobNotesError, SIDECAR_SUFFIX};
use crate::notification::Dropped;

/// The longest file name and content type of an upload, in bytes.
const NAME_MAX_BYTES: usize = 255;

/// The content type of an object that has none.
const UNKNOWN_CONTENT: &str = "application/octet-stream";

pub struct Receiver {
    /// Creates the jobs, and holds the ports of this use case.
    pub creator: Creator,
    pub blocked: BlockCheck,
    pub limits: FileLimits,
    /// The owner of a file that names none.
    pub default_owner: Owner,
}

#[derive(Debug)]
pub enum Received {
    /// The job, created now or before.
    Job(Box<Job>),
    /// No job, for this reason.
    Nothing(Reason),
}

/// Why a drop does not become a job, without a problem to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It is the sidecar of another file.
    Sidecar,
    /// It is a folder, as consoles create them.
    Folder,
    /// It was deleted again.
    Gone,
    /// Another file was dropped on its key since, and has its own notification.
    Replaced,
    /// It became a job before, and its request has changed since.
    Before,
}

/// Why a file could not become a job. The texts are details of the problem report.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    #[error("The key of the file names no job type. Drop the file under `{INBOX}<jobType>/`.")]
    NoJobType,
    #[error("The file has {size} bytes, more than the maximum of {limit}. Split it into several files.")]
    TooLarge { size: u64, limit: u64 },
    #[error(
        "The operator of this service has blocked the owner of the file. Ask the operator, then drop the file again."
    )]
    Blocked,
    /// It expired before a slot was free.
    #[error("The file expired before it could become a job. Drop it again.")]
    Expired,
    #[error(transparent)]
    JobNotes(#[from] JobNotesError),
    #[error(transparent)]
    Create(CreateJobError),
    #[error(transparent)]
    Port(#[from] PortError),
}

impl Receiver {
    /// Turns a dropped object into a job.
    pub async fn receive(&self, drop: &Dropped) -> Result<Received, ReceiveError> {
        if drop.key.ends_with(SIDECAR_SUFFIX) {
            return Ok(Received::Nothing(Reason::Sidecar));
        }
        if drop.key.ends_with('/') {
            return Ok(Received::Nothing(Reason::Folder));
        }
        let (job_type, name) = job_type_and_name(&drop.key).ok_or(ReceiveError::NoJobType)?;
        let head = match self.creator.objects.head(&drop.key).await {
            Err(PortError::NotFound) => return Ok(Received::Nothing(Reason::Gone)),
            head => head?,
        };
        if head.etag != drop.etag {
            return Ok(Received::Nothing(Reason::Replaced));
        }
        if head.size > self.limits.max_bytes {
            return Err(ReceiveError::TooLarge { size: head.size, limit: self.limits.max_bytes });
        }
        let notes = JobNotes::of(&*self.creator.objects, &drop.key, &head, &self.default_owner).await?;
        if self.blocked.block(&Principal::Owner(notes.owner.clone())).await?.is_some() {
            return Err(ReceiveError::Blocked);
        }
        let upload = self.remember(self.upload(drop, &head, name, &notes.owner)).await?;
        let request = notes.request(job_type, upload.file_guid)?;
        let key = idempotency_key(&upload);
        match self.creator.create(&upload.owner, &request, Some(&key)).await {
            Ok(job) => Ok(Received::Job(Box::new(job))),
            Err(CreateJobError::KeyReused) => Ok(Received::Nothing(Reason::Before)),
            Err(CreateJobError::UploadChanged(_) | CreateJobError::Port(PortError::Changed)) => {
                Ok(Received::Nothing(Reason::Replaced))
            }
            Err(CreateJobError::UnknownUpload(_)) if upload.expires_at <= self.creator.clock.now() => {
                Err(ReceiveError::Expired)
            }
            Err(CreateJobError::UnknownUpload(_) | CreateJobError::Port(PortError::NotFound)) => {
                Ok(Received::Nothing(Reason::Gone))
            }
            Err(error) => Err(ReceiveError::Create(error)),
        }
    }

    /// Stores the upload. An upload from an earlier delivery is kept, even if a sidecar now names another owner: that
    /// owner would not find the upload, and the file would be lost.
    async fn remember(&self, upload: Upload) -> Result<Upload, PortError> {
        self.creator.uploads.create(&upload).await?;
        match self.creator.uploads.upload(upload.file_guid, self.creator.clock.now()).await {
            // It has expired.
            Err(PortError::NotFound) => Ok(upload),
            stored => stored,
        }
    }

    /// Stores the problem as an object beside the inbox.
    pub async fn tell(&self, drop: &Dropped, problem: Bytes) -> Result<(), PortError> {
        let key = problem_key(&drop.key);
        self.creator.objects.put(&key, "application/problem+json", problem, None).await?;
        Ok(())
    }

    /// The object as an upload. Everything in it derives from the drop, so that another delivery makes the same upload.
    fn upload(&self, drop: &Dropped, head: &ObjectHead, name: &str, owner: &Owner) -> Upload {
        let fits = |text: &&str| (1..=NAME_MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control);
        let content_type = head.content_type.as_deref().filter(fits).unwrap_or(UNKNOWN_CONTENT);
        Upload {
            file_guid: drop.file_guid(),
            owner: owner.clone(),
            file_name: Some(name).filter(fits).map(str::to_owned),
            content_type: content_type.to_owned(),
            size: head.size,
            sha256: None,
            key: drop.key.clone(),
            state: UploadState::Ready { etag: head.etag.clone() },
            origin: None,
            created_at: drop.at,
            expires_at: expiry(drop.at, self.limits.retention),
        }
    }
}

/// The key by which a repeated drop finds its job.
fn idempotency_key(upload: &Upload) -> String {
    format!("{INBOX}{}", upload.file_guid)
}

/// `import` and `orders.csv` of `inbox/import/2025/orders.csv`.
fn job_type_and_name(key: &str) -> Option<(&str, &str)> {
    let (job_type, path) = key.strip_prefix(INBOX)?.split_once('/')?;
    Some((job_type, path.rsplit('/').next()?)).filter(|(job_type, _)| !job_type.is_empty())
}

/// The key of the problem report for the object of this key.
pub fn problem_key(key: &str) -> String {
    let place = format!("{INBOX_PROBLEMS}{}.json", key.strip_prefix(INBOX).unwrap_or(key));
    if place.len() <= KEY_MAX_BYTES {
        return place;
    }
    format!("{INBOX_PROBLEMS}{}.json", sha256_hex(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_contains_the_job_type_and_the_file_name() {
        assert_eq!(job_type_and_name("inbox/import/orders.csv"), Some(("import", "orders.csv")));
        assert_eq!(job_type_and_name("inbox/import/2025/06/orders.csv"), Some(("import", "orders.csv")));
        assert_eq!(job_type_and_name("inbox/orders.csv"), None);
        assert_eq!(job_type_and_name("inbox//orders.csv"), None);
        assert_eq!(job_type_and_name("uploads/import/orders.csv"), None);
    }

    #[test]
    fn the_key_of_a_problem_report_follows_from_the_key_of_the_file() {
        assert_eq!(problem_key("inbox/import/2025/a.csv"), "inbox-problems/import/2025/a.csv.json");
        assert_eq!(problem_key("inbox/a.csv"), "inbox-problems/a.csv.json");
        let long = format!("inbox/import/{}", "x".repeat(1011));
        assert_eq!(long.len(), KEY_MAX_BYTES);
        let problem = problem_key(&long);
        assert!(problem.len() < 100 && problem.starts_with(INBOX_PROBLEMS) && problem != problem_key(&long[..1020]));
    }
}
