//! The Lambda function `receive-file`.

use rowmill_core::job_types::JobTypes;

#[tokio::main]
pub async fn main() -> Result<(), lambda_runtime::Error> {
    receive_file::start::start(JobTypes::built_in(None)).await
}
