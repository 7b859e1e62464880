//! The Lambda function `complete-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    complete_job::start::start().await
}
