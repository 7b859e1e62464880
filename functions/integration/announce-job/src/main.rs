//! The Lambda function `announce-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    announce_job::start::start().await
}
