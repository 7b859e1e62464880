//! From the inbox queue's event to the use case and back.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use create_job::create::{CreateJobError, Creator};
use rowmill_api::problem::ProblemCode;
use rowmill_aws::host::http::Problem;
use rowmill_aws::observe::audit::{Change, DONE};
use rowmill_aws::{Batch, Delivery};
use rowmill_core::ports::{Deliveries, PortError};

use crate::notes::JobNotesError;
use crate::notification::{Dropped, Notification};
use crate::receive::{ReceiveError, Received, Receiver};

/// The delay before a message is delivered again after an outage, for its first delivery.
const OUTAGE_DELAY: Duration = Duration::from_secs(10);

/// The longest delay before a message is delivered again.
const LONGEST_DELAY: Duration = Duration::from_secs(15 * 60);

pub struct Inbox {
    pub receiver: Receiver,
    /// Postpones messages of the inbox queue.
    pub deliveries: Arc<dyn Deliveries>,
    /// The bucket. Other buckets of the account may send to the queue too.
    pub bucket: String,
}

/// Turns dropped files into jobs. Returns the ids of the messages to deliver again.
pub async fn handle(inbox: &Inbox, batch: Batch<Notification>) -> Vec<String> {
    let mut retry = Vec::new();
    for delivery in batch.deliveries {
        if let Err(delay) = take(inbox, &delivery.message).await {
            postpone(inbox, &delivery, delay).await;
            retry.push(delivery.message_id);
        }
    }
    retry
}

/// Handles a message. If it must be delivered again, returns the delay for its first delivery.
async fn take(inbox: &Inbox, message: &Notification) -> Result<(), Duration> {
    let records = match message {
        Notification::Test { event } => {
            tracing::info!(event, "the bucket's notifications arrive");
            return Ok(());
        }
        Notification::Event { records } => records,
    };
    let mut again = Ok(());
    for record in records {
        if record.bucket() != inbox.bucket {
            tracing::warn!(bucket = record.bucket(), "a notification of another bucket is not taken");
            continue;
        }
        let Some(drop) = record.drop() else {
            tracing::error!("the key of a dropped object is not UTF-8: it cannot be received");
            continue;
        };
        again = again.and(take_drop(inbox, &drop).await);
    }
    again
}

async fn take_drop(inbox: &Inbox, drop: &Dropped) -> Result<(), Duration> {
    let (file, upload) = (&drop.key, drop.file_guid());
    let error = match inbox.receiver.receive(drop).await {
        Ok(Received::Job(job)) => {
            tracing::info!(file, upload.id = %upload, job.id = %job.job_guid, "file received");
            log_change(job.owner.0.as_str(), Some(&job.job_guid.to_string()), &upload.to_string(), DONE);
            return Ok(());
        }
        Ok(Received::Nothing(reason)) => {
            tracing::info!(file, ?reason, "no job");
            return Ok(());
        }
        Err(error) => error,
    };
    if let Some(delay) = retry_delay(&error, &inbox.receiver.creator) {
        tracing::warn!(file, error = &error as &dyn Error, "file not received yet, to be tried again");
        return Err(delay);
    }
    // Once the upload is stored, a client can create a job on it.
    let uploaded = matches!(error, ReceiveError::Create(_)).then(|| upload.to_string());
    let problem = problem(error, &inbox.receiver.creator).with("file", file.as_str());
    let problem = problem.with("fileGuid", uploaded).with("droppedAt", drop.at.to_string());
    tracing::warn!(file, code = problem.code(), "file refused");
    log_change("", None, &upload.to_string(), problem.code());
    inbox.receiver.tell(drop, problem.to_json().into()).await.map_err(|error| {
        tracing::warn!(file, error = &error as &dyn Error, "problem report not stored yet, to be tried again");
        OUTAGE_DELAY
    })
}

/// Writes the audit line of a dropped file. A refused file may name no owner.
fn log_change(owner: &str, job: Option<&str>, upload: &str, outcome: &str) {
    Change { owner, by_operator: false, address: None, action: "receiveFile", job, upload: Some(upload), outcome }
        .log();
}

/// The delay before another try, if another try can help.
fn retry_delay(error: &ReceiveError, creator: &Creator) -> Option<Duration> {
    match error {
        ReceiveError::Create(CreateJobError::Full(full)) => {
            let (now, longest) = (creator.clock.now(), LONGEST_DELAY.as_secs());
            Some(Duration::from_secs(full.retry_after_seconds(now, OUTAGE_DELAY.as_secs(), longest)))
        }
        ReceiveError::Port(_) | ReceiveError::JobNotes(JobNotesError::Port(_)) => Some(OUTAGE_DELAY),
        // An unreadable row is a fault of Rowmill: try again, and in the end leave the message to an operator.
        // An operator may grant a missing permission.
        ReceiveError::Create(CreateJobError::Port(
            PortError::Unavailable { .. } | PortError::Invalid { .. } | PortError::Denied { .. },
        )) => Some(OUTAGE_DELAY),
        _ => None,
    }
}

/// Postpones a message, in proportion to its deliveries so far. After an hour of waiting, a few more minutes matter
/// little. Without the longer delays, many waiting messages would ask for a free slot all the time.
async fn postpone(inbox: &Inbox, delivery: &Delivery<Notification>, delay: Duration) {
    let delay = delay.saturating_mul(delivery.receive_count.max(1)).min(LONGEST_DELAY);
    if let Err(error) = inbox.deliveries.postpone(&delivery.receipt, delay).await {
        tracing::warn!(error = &error as &dyn Error, "not postponed: the queue delivers the message in its own time");
    }
}

fn problem(error: ReceiveError, creator: &Creator) -> Problem {
    let detail = error.to_string();
    match error {
        ReceiveError::NoJobType => Problem::new(ProblemCode::UnknownJobType, detail).field("jobType"),
        ReceiveError::TooLarge { limit, .. } => Problem::too_large(limit, detail),
        ReceiveError::Blocked => Problem::new(ProblemCode::OwnerBlocked, detail),
        ReceiveError::Expired => Problem::new(ProblemCode::UploadExpired, detail),
        ReceiveError::JobNotes(JobNotesError::Syntax { source, .. }) => {
            let problem = Problem::new(ProblemCode::InvalidJson, detail);
            problem.place(source.line(), source.column())
        }
        ReceiveError::JobNotes(JobNotesError::Shape { field, .. }) => {
            Problem::new(ProblemCode::InvalidBody, detail).field(field)
        }
        ReceiveError::JobNotes(JobNotesError::TooLong { .. }) => {
            Problem::too_large(crate::notes::SIDECAR_MAX_BYTES, detail)
        }
        ReceiveError::JobNotes(JobNotesError::Owner { .. }) => {
            Problem::new(ProblemCode::InvalidRequest, detail).field("owner")
        }
        ReceiveError::Create(error) => create_job::handler::problem(error, creator),
        ReceiveError::JobNotes(JobNotesError::Port(error)) | ReceiveError::Port(error) => error.into(),
    }
}
