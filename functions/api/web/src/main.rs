//! The Lambda function `web`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    web::start::start(rowmill_core::job_types::JobTypes::built_in(None)).await
}
