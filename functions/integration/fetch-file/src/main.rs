//! The Lambda function `fetch-file`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    fetch_file::start::start().await
}
