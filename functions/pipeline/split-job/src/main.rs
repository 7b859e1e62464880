//! The Lambda function `split-job`.

use rowmill_core::job_types::JobTypes;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    split_job::start::start(JobTypes::built_in(None)).await
}
