//! From the stream's event to the use case and back.

use std::error::Error;

use rowmill_aws::adapters::dynamodb::{JobChange, RowChange};
use rowmill_core::ports::PortError;

use crate::movement::Change;
use crate::push::Pusher;

/// Tells the watchers about these changes.
///
/// A change that cannot be read is logged, and counts as some change of its job: it would block all changes after it.
///
/// # Errors
/// The changes must be delivered again. All of them: to tell a state twice does no harm.
pub async fn handle(pusher: &Pusher, changes: Vec<RowChange>) -> Result<Option<String>, PortError> {
    pusher.push(changes.into_iter().filter_map(change).collect()).await.map(|()| None)
}

fn change(change: RowChange) -> Option<Change> {
    let (job_guid, place) = (change.job_guid()?, change.sequence_number().to_owned());
    match change.job() {
        Ok(Some(JobChange { before, after })) => Some(Change::Job(before.map(Box::new), Box::new(after))),
        Ok(None) => Some(Change::Counters(job_guid)),
        Err(error) => {
            let error = &error as &dyn Error;
            tracing::error!(job.id = %job_guid, change.number = place, error, "invalid change of a job row");
            Some(Change::Counters(job_guid))
        }
    }
}
