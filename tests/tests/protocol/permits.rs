//! A job type with workers, or with a service that answers later, and `concurrency`: so many of its tasks are held at once.

use std::sync::Arc;
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::World;
use rowmill_api::task::TaskOrder;
use rowmill_core::job_types::TargetType;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::task::{LEASE, TaskTerms};
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Permits, Target};
use serde_json::json;
use work_task::error::TaskError;
use work_task::lend::Lent;

use crate::chunks_of;
use crate::services::{LONG, Service, finish as finish_call};

const RENDER: &str = "render";

const TERMS: TaskTerms = TaskTerms { beat: Duration::from_secs(60), items: 1, called: false, minimum_client: None };

/// A world with a job of `rows` tasks, of which two may be held at once.
async fn world(rows: u64, service: Option<Arc<Service>>) -> (World, JobGuid) {
    let calls = TargetCalls { batch_items: 1, concurrency: 1, outputs: false, cancel: false };
    let terms = TaskTerms { called: service.is_some(), ..TERMS };
    let target = service.map(|service| service as Arc<dyn Target>);
    let render = Arc::new(TargetType::new(RENDER, calls, target).with_tasks(terms)) as Arc<dyn JobType>;
    let two = JobTypeLimits::parse(r#"{"render": {"concurrency": 2}}"#).unwrap();
    let world = World::with(chunks_of(500), &two, |_| Some(render));
    let file = world.store_csv(files::plain_csv(rows)).await;
    let job = world.create(RENDER, file, json!({})).await.unwrap().job_guid;
    world.run().await;
    (world, job)
}

async fn lend(world: &World) -> Option<Lent> {
    world.task_work.lend(RENDER, "w1").await.unwrap()
}

async fn begun(world: &World) -> Lent {
    let lent = lend(world).await.expect("a task is free");
    assert_eq!(world.task_work.beat(lent.id, lent.token).await.unwrap().0, TaskOrder::Continue);
    lent
}

async fn finish(world: &World, lent: &Lent) -> TaskOrder {
    world.task_work.report(lent.id, lent.token, None, br#"{"batchItemFailures": []}"#).await.unwrap()
}

async fn taken(world: &World) -> usize {
    world.jobs.permits(RENDER).await.unwrap().len()
}

#[tokio::test]
async fn no_more_tasks_are_lent_than_there_are_permits() {
    let (world, job) = world(5, None).await;
    let (one, two) = (begun(&world).await, begun(&world).await);
    assert!(lend(&world).await.is_none(), "two are held");
    assert_eq!(finish(&world, &one).await, TaskOrder::Finished);
    let three = begun(&world).await;
    assert!(lend(&world).await.is_none());
    world.task_work.release(two.id, two.token, false).await.unwrap();
    for held in [begun(&world).await, three] {
        assert_eq!(finish(&world, &held).await, TaskOrder::Finished);
    }
    while let Some(lent) = lend(&world).await {
        world.task_work.beat(lent.id, lent.token).await.unwrap();
        assert_eq!(finish(&world, &lent).await, TaskOrder::Finished);
    }
    assert_eq!((world.completed(job).await, taken(&world).await), (5, 0));
}

#[tokio::test]
async fn the_permit_of_a_dead_worker_goes_to_another_one() {
    let (world, job) = world(9, None).await;
    let dead = begun(&world).await;
    begun(&world).await;
    world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    let next = [begun(&world).await, begun(&world).await];
    assert!(matches!(world.task_work.beat(dead.id, dead.token).await, Err(TaskError::Gone(_))), "it is given up");
    assert!(lend(&world).await.is_none(), "the permit of the dead one is not a third");
    for lent in &next {
        assert_eq!(finish(&world, lent).await, TaskOrder::Finished);
    }
    while world.show(job).await.status != Status::Completed {
        let lent = begun(&world).await;
        assert_eq!(finish(&world, &lent).await, TaskOrder::Finished);
        world.run().await;
    }
}

#[tokio::test]
async fn the_permit_of_a_dead_worker_of_a_paused_job_goes_to_another_job() {
    let (world, paused) = world(2, None).await;
    let dead = [begun(&world).await, begun(&world).await];
    world.pause(paused).await;
    let file = world.store_csv(files::plain_csv(2)).await;
    let job = world.create(RENDER, file, json!({})).await.unwrap().job_guid;
    world.run().await;
    assert!(lend(&world).await.is_none(), "they may be at work");
    world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    for _ in 0..2 {
        let lent = begun(&world).await;
        assert_eq!((lent.id.job, finish(&world, &lent).await), (job, TaskOrder::Finished));
    }
    assert_eq!(world.completed(job).await, 2);
    world.resume(paused).await;
    world.run().await;
    assert!(matches!(world.task_work.beat(dead[0].id, dead[0].token).await, Err(TaskError::Gone(_))));
}

#[tokio::test]
async fn a_lease_that_nobody_knows_gives_its_permit_to_the_next() {
    let (world, _) = world(9, None).await;
    for _ in 0..2 {
        lend(&world).await.expect("a task is free");
    }
    assert!(lend(&world).await.is_none());
    world.clock.advance(LEASE + Duration::from_secs(6));
    assert!(lend(&world).await.is_some() && lend(&world).await.is_some());
    assert!(lend(&world).await.is_none());
}

#[tokio::test]
async fn the_permits_of_a_cancelled_job_are_free_for_others() {
    let (world, job) = world(4, None).await;
    let held = [begun(&world).await, begun(&world).await];
    world.cancel(job).await;
    for lent in &held {
        assert_eq!(world.task_work.beat(lent.id, lent.token).await.unwrap().0, TaskOrder::Stopping);
    }
    while world.show(job).await.status != Status::Cancelled {
        world.clock.advance(world.limits.sweep.stop.grace);
        world.sweep_and_run().await;
    }
    let file = world.store_csv(files::plain_csv(3)).await;
    let job = world.create(RENDER, file, json!({})).await.unwrap().job_guid;
    world.run().await;
    for _ in 0..3 {
        let lent = begun(&world).await;
        assert_eq!(finish(&world, &lent).await, TaskOrder::Finished);
    }
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn a_service_has_so_many_tasks_and_the_next_one_when_one_is_done() {
    let service = Arc::new(Service::default());
    let (world, job) = world(7, Some(service.clone())).await;
    let mut held = service.calls();
    assert_eq!(held.len(), 2, "the others wait");
    let mut done = 0;
    while let Some(call) = held.pop() {
        assert_eq!(finish_call(&world, &call).await.unwrap(), TaskOrder::Finished);
        done += 1;
        world.run().await;
        let next = service.calls();
        assert!(next.len() <= 1, "one for one: {next:?}");
        held.extend(next);
    }
    assert_eq!((done, world.completed(job).await), (7, 7));
}

#[tokio::test]
async fn waiting_tasks_of_a_service_get_the_permits_of_dead_ones() {
    let service = Arc::new(Service::default());
    let (world, job) = world(4, Some(service.clone())).await;
    assert_eq!(service.calls().len(), 2, "both die");
    for look in 0.. {
        assert!(look < 30, "it ends");
        world.clock.advance(LONG);
        world.sweep_and_run().await;
        let calls = service.calls();
        assert!(calls.len() <= 2, "{calls:?}");
        for call in calls {
            assert_eq!(finish_call(&world, &call).await.unwrap(), TaskOrder::Finished);
        }
        if world.show(job).await.status == Status::Completed {
            break;
        }
    }
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn no_permit_is_lost_and_none_is_used_twice_whatever_call_fails() {
    at_every_call(async |call, death| {
        let (world, job) = world(4, None).await;
        world.faults.plan_failure(call, death);
        let mut held: Vec<Lent> = Vec::new();
        for turn in 0.. {
            assert!(turn < 60, "it ends");
            if let Ok(Some(lent)) = world.task_work.lend(RENDER, "w1").await {
                held.push(lent);
            }
            assert!(held.len() <= 2, "two permits");
            if held.len() == 2 || turn % 3 == 2 {
                for lent in std::mem::take(&mut held) {
                    world.task_work.beat(lent.id, lent.token).await.ok();
                    for _ in 0..3 {
                        world.task_work.report(lent.id, lent.token, None, br#"{"batchItemFailures": []}"#).await.ok();
                    }
                }
                // One that nobody knows is over then.
                world.clock.advance(TERMS.patience() + Duration::from_secs(6));
            }
            world.run_through_crashes(world.limits.split.lease()).await;
            if world.show(job).await.status == Status::Completed {
                break;
            }
        }
        assert_eq!(world.completed(job).await, 4);
        !world.faults.is_pending()
    })
    .await;
}
