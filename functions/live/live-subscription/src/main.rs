//! The Lambda function `live-subscription`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    live_subscription::start::start().await
}
