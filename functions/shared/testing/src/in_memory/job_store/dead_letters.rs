use async_trait::async_trait;

use super::InMemoryJobStore;
use crate::in_memory::lock;
use rowmill_core::model::dead_letter::DeadLetter;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::{DeadLetters, PortError};

#[async_trait]
impl DeadLetters for InMemoryJobStore {
    async fn record_dead_letter(&self, job: JobGuid, letter: &DeadLetter) -> Result<(), PortError> {
        let place = (job, letter.message_id.clone());
        lock(&self.0).dead_letters.entry(place).or_insert_with(|| letter.clone());
        Ok(())
    }

    async fn dead_letters(&self, job: JobGuid, limit: usize) -> Result<Vec<DeadLetter>, PortError> {
        let tables = lock(&self.0);
        let of_job = tables.dead_letters.iter().filter(|((of, _), _)| *of == job);
        let mut letters: Vec<DeadLetter> = of_job.map(|(_, letter)| letter.clone()).take(limit).collect();
        letters.sort_by_key(|letter| letter.at);
        Ok(letters)
    }
}
