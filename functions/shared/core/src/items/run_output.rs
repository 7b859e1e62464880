//! Run outputs in the bucket, see [`RunOutput`].

use crate::model::checkpoint::Checkpoint;
use crate::model::ids::{JobGuid, RunId};
use crate::model::keys;
use crate::model::run_output::RunOutput;
use crate::model::tally::{ChunkAddress, Counts, Mark, MarkKind};
use crate::ports::{Objects, PortError};

pub async fn put(
    objects: &dyn Objects,
    job: JobGuid,
    chunk: ChunkAddress,
    run: RunId,
    output: &RunOutput,
) -> Result<(), PortError> {
    let bytes = output.to_bytes().map_err(|error| PortError::invalid("writing a run output", error))?;
    objects.put(&keys::run_output(job, chunk, run), "application/x-ndjson", bytes.into(), None).await?;
    Ok(())
}

/// Returns the mark of a chunk with these outcomes. Its run output is stored first, so it exists once a mark names it.
pub async fn put_before_mark(
    objects: &dyn Objects,
    job: JobGuid,
    chunk: ChunkAddress,
    run: RunId,
    (output, counts): (&RunOutput, &Counts),
) -> Result<Mark, PortError> {
    let kind = output.mark_kind(counts);
    if !matches!(kind, MarkKind::Clean | MarkKind::Skipped) {
        put(objects, job, chunk, run, output).await?;
    }
    Ok(Mark { kind, run })
}

/// Reads the output of a run.
pub async fn read(
    objects: &dyn Objects,
    job: JobGuid,
    chunk: ChunkAddress,
    run: RunId,
) -> Result<RunOutput, PortError> {
    let bytes = objects.read(&keys::run_output(job, chunk, run)).await?;
    RunOutput::from_bytes(&bytes).map_err(|error| PortError::invalid("reading a run output", error))
}

/// Reads the run output that a checkpoint names. It is empty if no item done so far has failed or written an output.
pub async fn of_checkpoint(
    objects: &dyn Objects,
    job: JobGuid,
    checkpoint: &Checkpoint,
) -> Result<RunOutput, PortError> {
    match checkpoint.run_output {
        None => Ok(RunOutput::default()),
        Some(run) => read(objects, job, checkpoint.chunk, run).await,
    }
}
