//! Start-up: builds the use cases once, then serves requests.

use std::collections::BTreeMap;

use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::task::TaskTerms;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::JobTargets;
use rowmill_targets::Targets;

use crate::allowed::{Allowed, WorkerSettings};
use crate::asks::Asks;
use crate::declaration::FUNCTION;
use crate::error::TaskError;
use crate::handler::{self, TaskRoutes};
use crate::lend::TaskWork;

/// Maximum size of the outputs of a chunk's items together. They are held in memory.
const OUTPUT_MAX_BYTES: u64 = 4 * 1024 * 1024;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let built_in = JobTypes::built_in(None);
    let targets = Targets::parse(&runtime.settings::<JobTargets>()?.json, &built_in.names())?;
    let work = TaskWork::new(&runtime.ports, TaskTypes::of(&built_in.with(targets.types())))?;
    let allowed = Allowed::parse(&runtime.settings::<WorkerSettings>()?.workers)?;
    serve::api(&runtime, TaskRoutes { work, allowed }, handler::handle).await
}

/// The job types whose chunks are tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskTypes(BTreeMap<String, TaskTerms>);

impl TaskTypes {
    pub fn of(job_types: &JobTypes) -> Self {
        let names = job_types.names().into_iter();
        let terms = names.filter_map(|name| Some((name.to_owned(), job_types.get(name)?.tasks()?)));
        Self(terms.collect())
    }

    /// The types whose tasks workers lease.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, terms)| !terms.called).map(|(name, _)| name.as_str())
    }

    /// The terms of a type whose tasks workers lease.
    pub(crate) fn lent(&self, job_type: &str) -> Result<TaskTerms, TaskError> {
        let terms = self.terms(job_type).ok().filter(|terms| !terms.called);
        terms.ok_or_else(|| TaskError::NoSuchType(job_type.to_owned()))
    }

    pub(crate) fn terms(&self, job_type: &str) -> Result<TaskTerms, TaskError> {
        self.0.get(job_type).copied().ok_or_else(|| TaskError::NoSuchType(job_type.to_owned()))
    }
}

impl TaskWork {
    pub fn new(ports: &Ports, types: TaskTypes) -> Result<Self, Missing> {
        Ok(Self {
            jobs: ports.jobs.get()?,
            tasks: ports.tasks.get()?,
            objects: ports.objects.get()?,
            chunks: ports.chunks.get()?.items.clone(),
            committer: JobSteps::of(ports)?.committer,
            clock: ports.clock.get()?,
            entropy: ports.entropy.get()?,
            types,
            asks: Asks::default(),
            output_max_bytes: OUTPUT_MAX_BYTES,
        })
    }
}
