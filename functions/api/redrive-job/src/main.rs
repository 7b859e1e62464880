//! The Lambda function `redrive-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    redrive_job::start::start().await
}
