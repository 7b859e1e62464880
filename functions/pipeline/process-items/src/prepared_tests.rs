use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rowmill_core::fixtures;
use rowmill_core::in_memory::{CountingEntropy, InMemoryJobStore, ManualClock};
use rowmill_core::job_types::JobTypes;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{Item, ItemError, ItemOutcome, ItemProcessor, JobType, ParamsError};
use rowmill_core::ports::{Admissions, Ceilings, Clock, Entropy, NewJob};

use crate::prepared::PreparedJobs;

/// A job type whose processors take 60 MiB each. Counts them.
#[derive(Clone, Default)]
struct Heavy(Arc<AtomicUsize>);

impl JobType for Heavy {
    fn name(&self) -> &str {
        "heavy"
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl ItemProcessor for Heavy {
    async fn process(&self, _: &Item) -> Result<ItemOutcome, ItemError> {
        Ok(ItemOutcome::Succeeded)
    }

    fn held_bytes(&self) -> usize {
        60 * 1024 * 1024
    }
}

async fn create(jobs: &InMemoryJobStore) -> JobGuid {
    let clock = ManualClock::default();
    let job_guid = ENTROPY.with(|entropy| entropy.job_guid(clock.now()));
    let spec = Spec { job_guid, job_type: "heavy".into(), ..fixtures::spec() };
    let new = NewJob {
        job: Job::waiting(&spec, clock.now(), clock.now()),
        spec,
        ceilings: Ceilings { owner: 9, job_type: 9, system: 9 },
        idempotency: None,
    };
    jobs.create(&new).await.unwrap();
    job_guid
}

thread_local! {
    static ENTROPY: CountingEntropy = CountingEntropy::default();
}

#[tokio::test]
async fn the_jobs_that_a_process_keeps_are_bounded_by_bytes() {
    let (jobs, heavy) = (Arc::new(InMemoryJobStore::default()), Heavy::default());
    let [one, two, three] = [create(&jobs).await, create(&jobs).await, create(&jobs).await];
    let prepared = PreparedJobs::new(jobs, JobTypes::of([Arc::new(heavy.clone()) as Arc<dyn JobType>]));
    for job in [one, two, one, two] {
        prepared.get(job).await.unwrap();
    }
    assert_eq!(heavy.0.load(Ordering::Relaxed), 2, "two of them fit into 128 MiB");
    for job in [three, two, three] {
        prepared.get(job).await.unwrap();
    }
    assert_eq!(heavy.0.load(Ordering::Relaxed), 3, "the third one takes the place of the one used longest ago");
    prepared.get(one).await.unwrap();
    assert_eq!(heavy.0.load(Ordering::Relaxed), 4);
}
