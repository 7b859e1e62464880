//! The Lambda function `upload`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    upload::start::start().await
}
