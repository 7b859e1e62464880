//! Start-up: builds the use case once, then serves requests.

use rowmill_aws::Runtime;
use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::owner_priorities::OwnerPriorities;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{BUCKET, BucketSettings, JobTargets, OtherBuckets, OwnerPrioritySettings};
use rowmill_targets::Targets;

use crate::create::Creator;
use crate::declaration::FUNCTION;
use crate::handler;
use crate::limits::CreateLimits;

/// Runs `create-job` with these job types, see [`creator`]. A binary with its own job types passes them here.
pub async fn start(job_types: JobTypes) -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let creator = creator(&runtime, job_types)?;
    serve::api(&runtime, creator, handler::handle).await
}

/// Builds the use case with the settings of the environment, for these job types and those of [`JobTargets`].
pub fn creator(runtime: &Runtime, job_types: JobTypes) -> Result<Creator, BoxError> {
    let targets = Targets::parse(&runtime.settings::<JobTargets>()?.json, &job_types.names())?;
    let job_types = job_types.with(targets.types());
    let type_limits = runtime.ports.type_limits.get()?;
    type_limits.check_known(&job_types.names())?;
    let owner_priorities = runtime.settings::<OwnerPrioritySettings>()?.priorities()?;
    let buckets = OtherBuckets::of(runtime.settings::<BucketSettings>()?, &BUCKET.read()?);
    Ok(Creator::new(&runtime.ports, job_types, runtime.settings::<CreateLimits>()?, owner_priorities, buckets)?)
}

impl Creator {
    pub fn new(
        ports: &Ports,
        job_types: JobTypes,
        limits: CreateLimits,
        owner_priorities: OwnerPriorities,
        buckets: OtherBuckets,
    ) -> Result<Self, Missing> {
        Ok(Self {
            jobs: ports.jobs.get()?,
            uploads: ports.uploads.get()?,
            objects: ports.objects.get()?,
            outstanding: ports.outstanding.get()?,
            records: ports.records.get()?,
            splits: ports.splits.get()?,
            job_types,
            clock: ports.clock.get()?,
            entropy: ports.entropy.get()?,
            limits,
            type_limits: ports.type_limits.get()?,
            owner_priorities,
            buckets,
            lists: ports.lists.get()?,
        })
    }
}
