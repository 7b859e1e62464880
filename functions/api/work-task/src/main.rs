//! The Lambda function `work-task`.

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    work_task::start::start().await
}
