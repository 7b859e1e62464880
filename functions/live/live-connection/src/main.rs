//! The Lambda function `live-connection`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    live_connection::start::start().await
}
