//! The Lambda function `push-progress`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    push_progress::start::start().await
}
