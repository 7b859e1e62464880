//! The Lambda function `sweep`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    sweep::start::start().await
}
