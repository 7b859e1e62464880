//! The Lambda function `process-items`.

use rowmill_core::job_types::JobTypes;

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    process_items::start::start(|records| JobTypes::built_in(Some(records))).await
}
