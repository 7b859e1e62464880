//! The Lambda function `upload`.

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    upload::start::start().await
}
