//! Lists the workers that have tasks.

use rowmill_api::at_work::{WorkerList, WorkerView};
use rowmill_core::ports::PortError;
use rowmill_core::progress::tasks::at_work;

use crate::lend::TaskWork;

/// Number of owners that one request looks at, over all job types.
const OWNERS_READ: usize = 100;

/// Number of rows of tasks that one request reads, over all owners.
const ROWS_READ: usize = 5_000;

/// Number of them of one owner. Together they have less than the 1 MB of one answer of DynamoDB.
const ROWS_OF_OWNER: usize = 1_000;

/// Number of tasks whose checkpoints one request reads.
const LEASED_READ: usize = 1_000;

impl TaskWork {
    /// The workers that have tasks of these job types.
    pub async fn workers(&self, job_types: &[&str]) -> Result<WorkerList, PortError> {
        let (mut owners_left, mut rows_left) = (OWNERS_READ, ROWS_READ);
        let (mut leased, mut complete) = (Vec::new(), true);
        for job_type in job_types {
            // One more than are left shows that there are more.
            let owners = self.tasks.owners(job_type, 0, owners_left + 1).await?;
            complete &= owners.len() <= owners_left;
            for (owner, _) in owners.into_iter().take(owners_left) {
                owners_left -= 1;
                // At least one, which DynamoDB demands.
                let limit = rows_left.clamp(1, ROWS_OF_OWNER);
                let rows = self.tasks.due_last(job_type, &owner, limit).await?;
                rows_left = rows_left.saturating_sub(rows.len());
                complete &= rows.len() < limit;
                leased.extend(rows.into_iter().filter(|task| task.holder.is_some()));
            }
        }
        complete &= leased.len() <= LEASED_READ;
        leased.truncate(LEASED_READ);
        let seen = at_work(&*self.jobs, leased, self.clock.now()).await?;
        Ok(WorkerList { workers: WorkerView::of_tasks(&seen), complete })
    }
}
