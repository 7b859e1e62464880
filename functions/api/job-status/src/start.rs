//! Start-up: reads the settings and builds the adapters once, then serves requests.

use std::sync::Arc;

use rowmill_core::items::audit::Auditor;
use rowmill_core::progress::views::job_reader::JobReader;
use rowmill_settings::{Links, SettingsGroup};

use crate::handler::{self, JobPages};
use crate::items::ItemPages;
use crate::limits::{AUDIT_LIMITS, ITEMS_PAGE_MAX, JOBS_PAGE_MAX};
use crate::results::JobResults;

/// Runs `job-status`.
///
/// # Errors
/// If a setting is missing or wrong, or the Lambda runtime API cannot be reached.
pub async fn start() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start(crate::NAME).await?;
    let (jobs, objects) = (runtime.job_store()?, runtime.objects()?);
    let pages = Arc::new(JobPages {
        items: ItemPages { jobs: jobs.clone(), objects: objects.clone() },
        audits: Auditor { jobs: jobs.clone(), objects: objects.clone(), clock: runtime.clock(), limits: AUDIT_LIMITS },
        results: JobResults {
            objects: objects.clone(),
            transfers: objects,
            clock: runtime.clock(),
            link_expiry: Links::from_env()?.expiry,
        },
        jobs: JobReader { jobs, clock: runtime.clock() },
        jobs_page_max: JOBS_PAGE_MAX,
        items_page_max: ITEMS_PAGE_MAX,
    });
    runtime
        .serve_api(move |call| {
            let pages = Arc::clone(&pages);
            async move { handler::handle(&pages, &call).await }
        })
        .await
}
