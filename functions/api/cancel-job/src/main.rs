//! The Lambda function `cancel-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    cancel_job::start::start().await
}
