//! The Lambda function `job-status`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    job_status::start::start().await
}
