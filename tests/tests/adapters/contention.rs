//! Jobs that begin and end at the same time write the same counters in transactions. DynamoDB refuses a transaction
//! that meets another one on an item. Here it does so, and time is virtual: what is measured is the backoff between the
//! tries.

use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream;
use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_core::model::ids::{JobGuid, Owner, RunId};
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::model::job::{Job, Lease};
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::{Admissions, Ceilings, Completions, CreateError, Created, NewJob};
use tokio::time::Instant;
use uuid::Uuid;

use crate::contended_server::ContendedServer;
use crate::dynamodb_server::create_job_tables;
use crate::lost_replies::{at, change, end, new_job};

/// Number of jobs that end, and of jobs that begin.
const JOBS: u128 = 200;

/// Number of jobs that end at once: the `MaximumConcurrency` of the completions queue in the template.
const ENDING: usize = 10;

/// Maximum time until a request is answered.
const PATIENCE: Duration = Duration::from_secs(2);

const ROOM: Ceilings = Ceilings { owner: 1000, job_type: 1000, system: 1000 };

struct World {
    server: ContendedServer,
    store: DynamoDbJobStore,
}

async fn world(seed: u64) -> World {
    fastrand::seed(seed);
    let server = ContendedServer::start();
    let client = server.client().await;
    let (jobs, admission) = create_job_tables(&client, 0).await;
    let store = DynamoDbJobStore::new(client, jobs, Some(admission));
    World { server, store }
}

/// A job of one of twenty owners. All are of one type.
fn job(number: u128, ceilings: Ceilings) -> NewJob {
    let mut new = new_job();
    // The time stands in front, and the rest is random.
    let random = u128::from(fastrand::u64(..)) >> 2;
    let guid = JobGuid(Uuid::from_u128((number << 80) | (7 << 76) | (0b10 << 62) | random));
    let owner = Owner(format!("owner-{}", number % 20));
    (new.job.job_guid, new.spec.job_guid) = (guid, guid);
    (new.job.owner, new.spec.owner) = (owner.clone(), owner);
    NewJob { idempotency: None, ceilings, ..new }
}

impl World {
    async fn running(&self, number: u128, ceilings: Ceilings) -> Job {
        let new = job(number, ceilings);
        assert_eq!(self.store.create(&new).await.unwrap(), Created::New);
        let lease = Lease { holder: RunId::from_bytes([1; 7]), until: at(50) };
        change(&self.store, new.job.job_guid, |job| job.take(lease, at(1))).await
    }

    async fn end(&self, seen: &Job) {
        let completion = end(seen.clone(), Ok(JobOutcome::Empty), Counts::default());
        self.store.complete(&completion).await.unwrap_or_else(|error| panic!("a completion is given up: {error:?}"));
    }

    /// Has jobs end, so many at once, while others are created, all at once. Returns how many were created, and the
    /// longest time that one of them took.
    async fn storm(&self, ending: &[Job], at_once: usize, new: &[NewJob]) -> (usize, Duration) {
        let created = join_all(new.iter().map(async |new| {
            let start = Instant::now();
            let created = match self.store.create(new).await {
                Ok(Created::New) => 1,
                Err(CreateError::Full(_)) => 0,
                other => panic!("{other:?}"),
            };
            (created, start.elapsed())
        }));
        let ended = stream::iter(ending).for_each_concurrent(at_once, |job| self.end(job));
        let (created, ()) = tokio::join!(created, ended);
        let longest = created.iter().map(|(_, time)| *time).max().unwrap_or_default();
        (created.iter().map(|(created, _)| created).sum(), longest)
    }
}

async fn contended(seed: u64, at_once: usize) {
    let world = world(seed).await;
    let ending = stream::iter(0..JOBS).then(|number| world.running(number, ROOM)).collect::<Vec<_>>().await;
    let new: Vec<NewJob> = (JOBS..2 * JOBS).map(|number| job(number, ROOM)).collect();
    let start = Instant::now();
    let (created, longest) = world.storm(&ending, at_once, &new).await;
    let conflicts = world.server.conflicts();
    println!(
        "seed {seed}, {at_once} ending at once: {created} created, longest {longest:?}, all {:?}, {} transactions, conflicts {:?}",
        start.elapsed(),
        world.server.transactions(),
        conflicts.values().sum::<u32>()
    );
    assert_eq!(created, new.len());
    assert!(longest <= PATIENCE, "a creation takes {longest:?}");
}

#[tokio::test(start_paused = true)]
async fn no_completion_is_given_up_and_creations_answer_soon_while_400_jobs_begin_and_end() {
    contended(1, ENDING).await;
    contended(2, usize::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn the_ceilings_hold_while_jobs_begin_and_end_at_them() {
    let world = world(3).await;
    let ceilings = Ceilings { owner: 1000, job_type: 200, system: 210 };
    let ending = stream::iter(0..JOBS).then(|number| world.running(number, ceilings)).collect::<Vec<_>>().await;
    assert!(matches!(world.store.create(&job(1000, ceilings)).await, Err(CreateError::Full(_))));
    let new: Vec<NewJob> = (JOBS..2 * JOBS).map(|number| job(number, ceilings)).collect();
    let (created, longest) = world.storm(&ending, ENDING, &new).await;
    println!("{created} created while others ended, longest {longest:?}");
    assert!(longest <= PATIENCE, "a creation takes {longest:?}");
    // All old jobs have ended, so exactly the rest of the slots are free.
    let mut more = 0;
    while let Ok(Created::New) = world.store.create(&job(2000 + more, ceilings)).await {
        more += 1;
    }
    assert_eq!(created + usize::try_from(more).unwrap(), 200);
}
