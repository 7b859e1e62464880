use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::job::Job;
use rowmill_core::ports::{Completion, Completions, WriteLost};

#[async_trait]
impl Completions for InMemoryJobStore {
    async fn complete(&self, completion: &Completion) -> Result<(), WriteLost> {
        let mut tables = lock(&self.0);
        let seen = &completion.seen;
        let job = tables.job(seen.job_guid)?;
        if completion.has_ended(job) {
            return Ok(());
        }
        if (job.status(), job.attempt, job.stopped_by()) != (seen.status(), seen.attempt, seen.stopped_by())
            || job.is_untaken() != seen.is_untaken()
            || (seen.is_untaken() && job.deadline_at != seen.deadline_at)
        {
            return Err(WriteLost::Condition(Box::new(job.clone())));
        }
        let seen = job.clone();
        *job = Job { revision: seen.revision + 1, ..seen.ended(&completion.end, completion.usage) };
        tables.slots.give_back(&seen, completion.end.finished_at);
        Ok(())
    }
}
