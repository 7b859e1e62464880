//! Start-up: reads the settings and builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_aws::Runtime;
use rowmill_core::job_types::JobTypes;
use rowmill_settings::{JobTargets, OwnerPrioritySettings, SettingsGroup};
use rowmill_targets::Targets;

use crate::create::Creator;
use crate::handler;
use crate::limits::CreateLimits;

/// Runs `create-job` with these job types, see [`creator`]. A binary with its own job types passes them here.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start(job_types: JobTypes) -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let creator = Arc::new(creator(&runtime, job_types)?);
    runtime
        .serve_api(move |call| {
            let creator = Arc::clone(&creator);
            async move { handler::handle(&creator, &call).await }
        })
        .await
}

/// Builds the use case from the environment's adapters and limits, for these job types and those of [`JobTargets`].
///
/// # Errors
/// If a setting is missing or wrong.
pub fn creator(runtime: &Runtime, job_types: JobTypes) -> Result<Creator, lambda_runtime::Error> {
    let targets = Targets::parse(&JobTargets::from_env()?.json, &job_types.names())?;
    let job_types = job_types.with(targets.types());
    let type_limits = runtime.type_limits()?;
    type_limits.check_known(&job_types.names())?;
    Ok(Creator {
        jobs: runtime.job_store()?,
        uploads: runtime.upload_store()?,
        objects: runtime.objects()?,
        outstanding: runtime.outstanding_uploads()?,
        records: runtime.record_store()?,
        splits: runtime.split_queue()?,
        job_types,
        clock: runtime.clock(),
        entropy: runtime.entropy(),
        limits: CreateLimits::from_env()?,
        type_limits,
        owner_priorities: OwnerPrioritySettings::from_env()?.priorities()?,
    })
}
