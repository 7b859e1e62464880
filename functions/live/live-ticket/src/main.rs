//! The Lambda function `live-ticket`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    live_ticket::start::start().await
}
