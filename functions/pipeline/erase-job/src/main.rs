//! The Lambda function `erase-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    erase_job::start::start().await
}
