//! The Lambda function `dead-letter`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    dead_letter::start::start().await
}
