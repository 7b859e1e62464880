//! The manifest of a job's results, and the state of their copy.

use bytes::Bytes;

use crate::model::ids::JobGuid;
use crate::model::keys;
use crate::model::results::{CopyState, Manifest, Results};
use crate::ports::{Objects, PortError, found};

/// The manifest of these results, and its bytes; none if it has expired.
///
/// # Errors
/// `Invalid` if it is no manifest; `Unavailable`.
pub async fn read_manifest(
    objects: &dyn Objects,
    job: JobGuid,
    results: &Results,
) -> Result<Option<(Manifest, Bytes)>, PortError> {
    let Some(json) = found(objects.read(&results.manifest_key(job)).await)? else { return Ok(None) };
    let manifest = serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading a manifest", error))?;
    Ok(Some((manifest, json)))
}

/// The object that says that the copy is whole.
const STORED: &str = "stored";

/// The object that says why the copy is given up. A run that is still at it may store it all the same.
const FAILED: &str = "failed";

/// How far the copy of an attempt's results is, and why it failed if it did.
///
/// # Errors
/// `Unavailable`.
pub async fn copy_state(
    objects: &dyn Objects,
    job: JobGuid,
    attempt: u32,
) -> Result<(CopyState, Option<String>), PortError> {
    if found(objects.head(&keys::results_copy(job, attempt, STORED)).await)?.is_some() {
        return Ok((CopyState::Stored, None));
    }
    let failed = found(objects.read(&keys::results_copy(job, attempt, FAILED)).await)?;
    Ok(match failed {
        Some(problem) => (CopyState::Failed, Some(String::from_utf8_lossy(&problem).into_owned())),
        None => (CopyState::Pending, None),
    })
}

/// Stores that the copy of an attempt's results is whole, or else why it is given up.
pub async fn end_copy(
    objects: &dyn Objects,
    job: JobGuid,
    attempt: u32,
    problem: Option<&'static str>,
) -> Result<(), PortError> {
    let says = if problem.is_some() { FAILED } else { STORED };
    let text = problem.unwrap_or_default();
    objects.put(&keys::results_copy(job, attempt, says), "text/plain", text.into(), None).await?;
    Ok(())
}
