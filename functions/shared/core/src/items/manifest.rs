//! Reading the manifest of a job's results.

use bytes::Bytes;

use crate::model::ids::JobGuid;
use crate::model::results::{Manifest, Results};
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
