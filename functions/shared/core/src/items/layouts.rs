//! The heads of the files of a job over many files, each stored once under its [layout](LayoutId).

use bytes::Bytes;

use crate::model::files::LayoutId;
use crate::model::ids::JobGuid;
use crate::model::keys;
use crate::model::messages::ChunkMessage;
use crate::model::spec::Spec;
use crate::ports::{Objects, PortError};

/// Stores a head under the name of its layout.
pub async fn put(objects: &dyn Objects, job: JobGuid, layout: &LayoutId, head: Bytes) -> Result<(), PortError> {
    objects.put(&keys::layout(job, layout), "application/json", head, None).await.map(drop)
}

/// Stores this layout again, so that it does not expire.
pub async fn keep(objects: &dyn Objects, job: JobGuid, layout: &LayoutId) -> Result<(), PortError> {
    let head = objects.read(&keys::layout(job, layout)).await?;
    put(objects, job, layout, head).await
}

/// The spec by which the items of this chunk are read: with the head of its file, in a job over many files.
pub async fn spec_of(objects: &dyn Objects, spec: Spec, message: &ChunkMessage) -> Result<Spec, PortError> {
    let Some(layout) = message.layout() else { return Ok(spec) };
    let json = objects.read(&keys::layout(message.job_guid, layout)).await?;
    let head = serde_json::from_slice(&json).map_err(|error| PortError::invalid("reading a layout", error))?;
    Ok(Spec { head, ..spec })
}
