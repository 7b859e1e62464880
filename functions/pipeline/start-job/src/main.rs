//! The Lambda function `start-job`.

use rowmill_core::job_types::JobTypes;

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    start_job::start::start(JobTypes::built_in(None)).await
}
