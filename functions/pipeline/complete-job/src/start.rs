//! Start-up: reads the settings and builds the adapters once, then serves messages.

use std::sync::Arc;

use rowmill_settings::SettingsGroup;

use crate::complete::Completer;
use crate::compose::Composer;
use crate::compose::writer::PART_BYTES;
use crate::handler;
use crate::limits::CompleteLimits;

/// Runs `complete-job`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("complete-job").await?;
    let limits = CompleteLimits::from_env()?;
    let (jobs, objects) = (runtime.job_store()?, runtime.objects()?);
    let completer = Arc::new(Completer {
        composer: Composer {
            jobs: jobs.clone(),
            objects: objects.clone(),
            multipart: objects,
            clock: runtime.clock(),
            unprocessed_max_bytes: limits.unprocessed_max_bytes,
            part_bytes: PART_BYTES,
            packed: limits.packed.into(),
        },
        jobs,
        completions: runtime.completions_queue()?,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        margin: limits.margin(),
        lease: limits.lease(),
        retention: limits.jobs.retention,
    });
    runtime
        .serve_queue(move |batch| {
            let completer = Arc::clone(&completer);
            async move { handler::handle(&completer, batch).await }
        })
        .await
}
