//! The Lambda function `complete-job`.

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    complete_job::start::start().await
}
