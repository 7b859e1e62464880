//! Start-up: builds the use cases once, then serves requests.

use std::collections::BTreeMap;

use rowmill_aws::host::serve;
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::client_version::ClientVersion;
use rowmill_core::model::task::TaskTerms;
use rowmill_core::ports::BoxError;
use rowmill_core::progress::JobSteps;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::{JobTargets, Links};
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
    let types = TaskTypes::of(&built_in.with(targets.types()));
    let work = TaskWork::new(&runtime.ports, types, runtime.settings::<Links>()?)?;
    let allowed = Allowed::parse(&runtime.settings::<WorkerSettings>()?.workers)?;
    serve::api(&runtime, TaskRoutes { work, allowed }, handler::handle).await
}

/// The job types whose chunks are tasks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TaskTypes(BTreeMap<String, TaskTerms>);

impl TaskTypes {
    pub fn of(job_types: &JobTypes) -> Self {
        let names = job_types.names().into_iter();
        let terms = names.filter_map(|name| Some((name.to_owned(), job_types.terms(name)?)));
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

    /// Checks that a client may work on a job type. Tasks that an older one holds stay its own.
    ///
    /// # Errors
    /// `Outdated`; `NoSuchType`.
    pub fn admits(&self, job_type: &str, client: Option<&str>) -> Result<(), TaskError> {
        let Some(minimum) = self.lent(job_type)?.minimum_client else { return Ok(()) };
        let version = client.and_then(ClientVersion::of_client);
        if version.is_some_and(|version| version >= minimum) {
            return Ok(());
        }
        Err(TaskError::Outdated { job_type: job_type.to_owned(), minimum, client: client.map(str::to_owned) })
    }

    pub(crate) fn terms(&self, job_type: &str) -> Result<TaskTerms, TaskError> {
        self.0.get(job_type).copied().ok_or_else(|| TaskError::NoSuchType(job_type.to_owned()))
    }
}

impl TaskWork {
    pub fn new(ports: &Ports, types: TaskTypes, links: Links) -> Result<Self, Missing> {
        Ok(Self {
            jobs: ports.jobs.get()?,
            tasks: ports.tasks.get()?,
            objects: ports.objects.get()?,
            transfers: ports.transfers.get()?,
            link_expiry: links.expiry,
            chunks: ports.chunks.get()?.items.clone(),
            committer: JobSteps::of(ports)?.committer,
            clock: ports.clock.get()?,
            entropy: ports.entropy.get()?,
            types,
            asks: Asks::default(),
            type_limits: ports.type_limits.get()?,
            output_max_bytes: OUTPUT_MAX_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_type_admits_clients_from_its_minimum_on() {
        let terms = |minimum: Option<&str>| TaskTerms {
            beat: Duration::from_secs(60),
            items: 1,
            called: false,
            minimum_client: minimum.map(|version| version.parse().unwrap()),
        };
        let types = TaskTypes(
            [("any", terms(None)), ("render", terms(Some("1.4.0")))]
                .map(|(name, terms)| (name.to_owned(), terms))
                .into(),
        );
        let refused = |job_type, client| types.admits(job_type, client).err().map(|error| error.to_string());
        for (job_type, client) in [("any", None), ("render", Some("r/1.4.0")), ("render", Some("r/2.0.0"))] {
            assert_eq!(refused(job_type, client), None);
        }
        let old = refused("render", Some("r/1.3.9")).unwrap();
        assert!(old.contains("version 1.4.0 or later, and this one is `r/1.3.9`. Update"), "{old}");
        for client in [None, Some("r"), Some("r/1.4.0-rc.1")] {
            assert!(refused("render", client).is_some(), "{client:?}");
        }
        assert!(matches!(types.admits("none", None), Err(TaskError::NoSuchType(_))));
    }
}
