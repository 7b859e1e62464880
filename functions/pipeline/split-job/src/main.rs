//! The Lambda function `split-job`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    split_job::start::start().await
}
