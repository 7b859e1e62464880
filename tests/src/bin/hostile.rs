//! `create-job` and `process-items` with two more job types, `hostile` and `slow`. Each row scripts its item: column
//! `ms` is its duration in milliseconds, and `abort` in column `then` makes it abort the process.
//!
//! The local stack of the chaos tests runs this executable as both functions. The function name that Lambda sets
//! decides which. The two types differ only in name, so that tests can fill the ceiling of one and not of the other.

use std::sync::Arc;
use std::time::Duration;

use acceptance::world::plain_type;
use async_trait::async_trait;
use lambda_runtime::Error;
use rowmill_core::job_types::{Import, JobTypes, Validate};
use rowmill_core::ports::RecordStore;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType};
use rowmill_core::text::Record;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let function = std::env::var("AWS_LAMBDA_FUNCTION_NAME")?;
    if function.ends_with("create-job") {
        create_job::start::start(job_types(None)).await
    } else {
        process_items::start::start(|records| job_types(Some(records))).await
    }
}

fn job_types(records: Option<Arc<dyn RecordStore>>) -> JobTypes {
    let built_in: [Arc<dyn JobType>; 2] = [Arc::new(Import::new(records)), Arc::new(Validate)];
    let hostile: [Arc<dyn JobType>; 2] = ["hostile", "slow"].map(|name| plain_type(name, Script));
    JobTypes::of(built_in.into_iter().chain(hostile))
}

/// A processor whose rows script their items.
#[derive(Clone)]
struct Script;

#[async_trait]
impl ItemProcessor for Script {
    async fn process(&self, item: &Item) -> Result<ItemOutcome, ItemError> {
        let Record::Cells(cells) = &item.record else { return Err(ItemError::permanent("no_cells", "not a CSV row")) };
        let ms = cells.get("ms").unwrap_or_default().parse().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(ms)).await;
        if cells.get("then") == Some("abort") {
            std::process::abort();
        }
        Ok(ItemOutcome::Succeeded)
    }
}
