//! Start-up: builds the use cases once, then serves requests.

use rowmill_api::job::JobReader;
use rowmill_aws::host::serve;
use rowmill_core::items::audit::Auditor;
use rowmill_core::ports::BoxError;
use rowmill_core::wiring::{Missing, Ports};
use rowmill_settings::Links;

use crate::declaration::FUNCTION;
use crate::handler::{self, JobPages};
use crate::items::ItemPages;
use crate::limits::{AUDIT_LIMITS, ITEMS_PAGE_MAX, JOBS_PAGE_MAX};
use crate::repeat::JobRequests;
use crate::results::JobResults;
use crate::tasks::TaskPages;
use crate::why::JobReasons;

pub async fn start() -> Result<(), BoxError> {
    let runtime = rowmill_aws::start(&FUNCTION).await?;
    let ports = &runtime.ports;
    let pages = JobPages::new(ports, runtime.settings::<Links>()?)?;
    serve::api(&runtime, pages, handler::handle).await
}

impl JobPages {
    pub fn new(ports: &Ports, links: Links) -> Result<Self, Missing> {
        let (jobs, objects, clock) = (ports.jobs.get()?, ports.objects.get()?, ports.clock.get()?);
        let transfers = ports.transfers.get()?;
        let requests = JobRequests { jobs: jobs.clone(), objects: objects.clone() };
        let items = ItemPages { jobs: jobs.clone(), objects: objects.clone() };
        let audits =
            Auditor { jobs: jobs.clone(), objects: objects.clone(), clock: clock.clone(), limits: AUDIT_LIMITS };
        let results = JobResults { objects, transfers, clock: clock.clone(), link_expiry: links.expiry };
        let (breakers, type_limits) = (ports.breakers.get()?, ports.type_limits.get()?);
        let tasks = ports.tasks.get()?;
        let reasons =
            JobReasons { jobs: jobs.clone(), breakers, tasks: tasks.clone(), type_limits, clock: clock.clone() };
        let tasks = TaskPages { jobs: jobs.clone(), tasks, clock: clock.clone() };
        let jobs = JobReader { jobs, clock };
        Ok(Self {
            items,
            audits,
            results,
            tasks,
            reasons,
            requests,
            jobs,
            jobs_page_max: JOBS_PAGE_MAX,
            items_page_max: ITEMS_PAGE_MAX,
        })
    }
}
