use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use rowmill_core::model::breaker::Breaker;
use rowmill_core::ports::{BreakerMoved, Breakers, PortError};

/// The breakers of the job types in memory.
#[derive(Debug, Default)]
pub struct InMemoryBreakers(Mutex<BTreeMap<String, Breaker>>);

impl InMemoryBreakers {
    /// The breaker of a job type, at once.
    pub fn now(&self, job_type: &str) -> Option<Breaker> {
        lock(&self.0).get(job_type).cloned()
    }
}

#[async_trait]
impl Breakers for InMemoryBreakers {
    async fn breaker(&self, job_type: &str) -> Result<Option<Breaker>, PortError> {
        Ok(self.now(job_type))
    }

    async fn move_breaker(&self, job_type: &str, next: &Breaker) -> Result<BreakerMoved, PortError> {
        let mut breakers = lock(&self.0);
        let there = breakers.get(job_type);
        if there == Some(next) {
            return Ok(BreakerMoved::Won);
        }
        if there.map_or(0, |there| there.rev) != next.rev - 1 {
            return Ok(BreakerMoved::Lost(there.cloned()));
        }
        breakers.insert(job_type.to_owned(), next.clone());
        Ok(BreakerMoved::Won)
    }
}
