//! The Lambda function `job-status`.

use std::sync::Arc;
use std::time::Duration;

use job_status::handler::{self, JobPages};
use job_status::items::ItemPages;
use job_status::results::JobResults;
use job_status::show::Jobs;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let runtime = rowmill_aws::start("job-status").await?;
    let (jobs, objects) = (runtime.job_store()?, runtime.objects()?);
    let pages = Arc::new(JobPages {
        items: ItemPages { jobs: jobs.clone(), objects: objects.clone() },
        results: JobResults {
            objects: objects.clone(),
            transfers: objects,
            clock: runtime.clock(),
            link_expiry: Duration::from_secs(runtime.setting("ROWMILL_PRESIGN_EXPIRY_SECONDS", 3600)?),
        },
        jobs: Jobs { jobs, clock: runtime.clock() },
        jobs_page_max: runtime.setting("ROWMILL_LIST_PAGE_MAX", 100)?,
        items_page_max: runtime.setting("ROWMILL_ITEMS_PAGE_MAX", 1000)?,
    });
    runtime
        .serve_http(move |request| {
            let pages = Arc::clone(&pages);
            async move { handler::handle(&pages, request).await }
        })
        .await
}
