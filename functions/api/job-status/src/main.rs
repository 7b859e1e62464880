//! The Lambda function `job-status`.

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    job_status::start::start().await
}
