//! The Lambda function `browse-datasets`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    browse_datasets::start::start().await
}
