//! The Lambda function `dead-letter`.

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    dead_letter::start::start().await
}
