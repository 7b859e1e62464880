//! Services that answer later: they are called with the items of a task, accept them, beat and report as workers do.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::World;
use async_trait::async_trait;
use process_items::end::ChunkEnd;
use rowmill_api::task::TaskOrder;
use rowmill_core::job_types::TargetType;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::dead_letter::POISON;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::task::{TaskId, TaskTerms};
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{ACCEPTED, Clock, Jobs, Target, TargetError, TargetRequest};
use serde_json::{Value, json};
use work_task::error::TaskError;

use crate::chunks_of;

const TERMS: TaskTerms = TaskTerms { beat: Duration::from_secs(60), items: 4, called: true, minimum_client: None };

const PRESS: &str = "press";

/// The longest that a task may take.
const DAYS: Duration = Duration::from_secs(3 * 24 * 3600);

/// Later than the time of a service that has got a call at the end of an invocation, and has not beaten.
pub const LONG: Duration = Duration::from_secs(600);

/// The answer to a call.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Answer {
    Accepts,
    /// It answers as a target that answers at once.
    Outcomes,
    Busy,
    Refuses,
    /// The call may have arrived.
    Nothing,
    /// Accepts, but finishes before it says so.
    FinishesFirst,
}

/// A service that accepts each call, unless it is to answer otherwise.
#[derive(Default)]
pub struct Service {
    answers: Mutex<VecDeque<Answer>>,
    calls: Mutex<Vec<Value>>,
    /// The world of a service that finishes first.
    world: Mutex<Weak<World>>,
}

#[async_trait]
impl Target for Service {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        self.calls.lock().unwrap().push(serde_json::to_value(request).unwrap());
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.unwrap_or(Answer::Accepts) {
            Answer::Accepts => Ok(ACCEPTED.to_vec()),
            Answer::Outcomes => Ok(br#"{"batchItemFailures": []}"#.to_vec()),
            Answer::Busy => Err(TargetError::busy("later", None)),
            Answer::Refuses => Err(TargetError::refused("never")),
            Answer::Nothing => Err(TargetError::no_answer("silence")),
            Answer::FinishesFirst => {
                let world = self.world.lock().unwrap().upgrade().unwrap();
                assert_eq!(finish(&world, &self.call()).await.unwrap(), TaskOrder::Finished);
                Ok(ACCEPTED.to_vec())
            }
        }
    }
}

/// A call as the service sees it.
#[derive(Clone, Debug)]
pub struct Call {
    id: TaskId,
    token: RunId,
    items: Vec<String>,
}

impl Service {
    fn answers(&self, answers: &[Answer]) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// The calls since the last look.
    pub fn calls(&self) -> Vec<Call> {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.into_iter().map(|call| Call::of(&call)).collect()
    }

    fn call(&self) -> Call {
        let mut calls = self.calls();
        assert_eq!(calls.len(), 1, "one call: {calls:?}");
        calls.remove(0)
    }
}

impl Call {
    fn of(request: &Value) -> Self {
        let text = |field: &str| request[field].as_str().unwrap().to_owned();
        let items = request["items"].as_array().unwrap().iter();
        Self {
            id: text("taskId").parse().unwrap(),
            token: text("token").parse().unwrap(),
            items: items.map(|item| item["itemIdentifier"].as_str().unwrap().to_owned()).collect(),
        }
    }
}

fn world() -> (World, Arc<Service>) {
    let service = Arc::new(Service::default());
    let calls = TargetCalls { batch_items: 4, concurrency: 1, outputs: false, cancel: false };
    let press = TargetType::new(PRESS, calls, Some(service.clone())).with_tasks(TERMS);
    (World::with_job_type(chunks_of(500), |_| Some(Arc::new(press) as Arc<dyn JobType>)), service)
}

/// A world with a job over these rows, whose chunks the service is called with.
async fn called(csv: Vec<u8>, answers: &[Answer]) -> (World, Arc<Service>, JobGuid) {
    let (world, service) = world();
    service.answers(answers);
    let file = world.store_csv(csv).await;
    let request = json!({ "jobType": PRESS, "fileGuid": file, "deadlineSeconds": 2 * DAYS.as_secs() });
    let job = world.request(request).await.unwrap().job_guid;
    world.run().await;
    (world, service, job)
}

async fn beat(world: &World, call: &Call) -> Result<TaskOrder, TaskError> {
    world.task_work.beat(call.id, call.token).await.map(|(order, _)| order)
}

pub async fn finish(world: &World, call: &Call) -> Result<TaskOrder, TaskError> {
    world.task_work.report(call.id, call.token, None, br#"{"batchItemFailures": []}"#).await
}

/// The sweep looks at the job after this time.
async fn look_after(world: &World, time: Duration) {
    world.clock.advance(time);
    world.sweep_and_run().await;
}

#[tokio::test]
async fn a_service_accepts_its_items_and_answers_days_later() {
    // The second row has too few cells: the service does not get it.
    let mut csv = String::from_utf8(files::plain_csv(6)).unwrap();
    let row = csv.lines().nth(2).unwrap().to_owned();
    csv = csv.replace(&row, row.split(',').next().unwrap());
    let (world, service, job) = called(csv.into_bytes(), &[]).await;
    let calls = service.calls();
    assert_eq!(calls.iter().map(|call| call.items.len()).collect::<Vec<_>>(), [3, 2]);
    assert!(world.jobs.job(job).await.unwrap().first_chunk_at.is_some());
    assert!(world.chunks.take().is_empty(), "the service has the only copy");
    let began = world.clock.now();
    while world.clock.now() < began + DAYS {
        for call in &calls {
            assert_eq!(beat(&world, call).await.unwrap(), TaskOrder::Continue);
        }
        look_after(&world, TERMS.beat).await;
    }
    let one = &calls[0].items[..1];
    let failed = json!({ "batchItemFailures": [{ "itemIdentifier": one[0], "code": "torn" }] }).to_string();
    let order = world.task_work.report(calls[0].id, calls[0].token, Some(one), failed.as_bytes()).await;
    assert_eq!(order.unwrap(), TaskOrder::Continue);
    for call in &calls {
        assert_eq!(finish(&world, call).await.unwrap(), TaskOrder::Finished);
    }
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 4, 2));
    assert!(service.calls().is_empty(), "it is not called again");
    assert!(world.tasks.every_task().is_empty());
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn a_service_may_finish_before_its_call_is_answered() {
    let (world, service) = world();
    let world = Arc::new(world);
    *service.world.lock().unwrap() = Arc::downgrade(&world);
    service.answers(&[Answer::FinishesFirst]);
    let file = world.store_csv(files::plain_csv(3)).await;
    let job = world.create(PRESS, file, json!({})).await.unwrap().job_guid;
    assert_eq!(world.completed(job).await, 3);
    assert!(service.calls().is_empty() && world.tasks.every_task().is_empty());
}

#[tokio::test]
async fn a_service_may_answer_at_once() {
    let (world, service, job) = called(files::plain_csv(6), &[Answer::Outcomes, Answer::Refuses]).await;
    assert_eq!(service.calls().len(), 2);
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 4, 2));
    assert_eq!(world.all_failed(job).await[0].code, "target_refused");
    assert!(world.tasks.every_task().is_empty());
}

#[tokio::test]
async fn a_service_that_refuses_for_now_is_called_again_by_the_queue() {
    let (world, service) = world();
    let file = world.store_csv(files::plain_csv(3)).await;
    let job = world.create(PRESS, file, json!({})).await.unwrap().job_guid;
    world.split().await;
    let message = world.chunks.take().remove(0);
    service.answers(&[Answer::Busy, Answer::Busy]);
    for redelivered in [false, true] {
        assert!(world.try_process(&message, redelivered).await.is_err(), "the message returns to its queue");
        assert!(world.tasks.every_task().is_empty(), "the service does not have them");
        let refused = service.call();
        assert!(matches!(beat(&world, &refused).await, Ok(TaskOrder::Finished) | Err(TaskError::Gone(_))));
    }
    assert_eq!(world.process(&message, true).await, ChunkEnd::Offered);
    let call = service.call();
    assert_eq!(call.items.len(), 3, "a refusal is no death");
    assert_eq!(finish(&world, &call).await.unwrap(), TaskOrder::Finished);
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn a_call_without_an_answer_may_have_arrived() {
    let (world, service, job) = called(files::plain_csv(3), &[Answer::Nothing]).await;
    let call = service.call();
    look_after(&world, TERMS.beat).await;
    assert!(service.calls().is_empty(), "it may be at work");
    assert_eq!(beat(&world, &call).await.unwrap(), TaskOrder::Continue, "it is");
    assert_eq!(finish(&world, &call).await.unwrap(), TaskOrder::Finished);
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn a_service_that_dies_is_called_again_and_its_late_report_is_refused() {
    let (world, service, job) = called(files::plain_csv(3), &[]).await;
    let first = service.call();
    assert_eq!(beat(&world, &first).await.unwrap(), TaskOrder::Continue);
    look_after(&world, LONG).await;
    let second = service.call();
    assert_eq!(second.items, first.items[..1], "it may have died of one of them");
    assert!(matches!(finish(&world, &first).await, Err(TaskError::Gone(_))));
    assert_eq!(finish(&world, &second).await.unwrap(), TaskOrder::Finished);
    while world.show(job).await.status != Status::Completed {
        look_after(&world, Duration::from_secs(60)).await;
        for call in service.calls() {
            assert_eq!(finish(&world, &call).await.unwrap(), TaskOrder::Finished);
        }
    }
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn an_item_that_every_call_dies_of_fails_alone() {
    let (world, service, job) = called(files::plain_csv(4), &[]).await;
    let poison = format!("{job}/2");
    let mut deaths = 0;
    for look in 0.. {
        assert!(look < 60, "it ends");
        for call in service.calls() {
            match call.items.contains(&poison) {
                true => deaths += 1,
                false => assert_eq!(finish(&world, &call).await.unwrap(), TaskOrder::Finished),
            }
        }
        if world.show(job).await.status == Status::Completed {
            break;
        }
        look_after(&world, LONG).await;
    }
    let shown = world.show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed, deaths), (3, 1, 4));
    let failed = world.all_failed(job).await;
    assert_eq!((failed[0].row, failed[0].code.as_str()), (2, POISON));
}

#[tokio::test]
async fn a_service_that_gives_its_items_back_is_called_again() {
    let (world, service, job) = called(files::plain_csv(3), &[]).await;
    let first = service.call();
    let one = &first.items[..1];
    let report = world.task_work.report(first.id, first.token, Some(one), br#"{"batchItemFailures": []}"#).await;
    assert_eq!(report.unwrap(), TaskOrder::Continue);
    world.task_work.release(first.id, first.token, false).await.unwrap();
    world.run().await;
    let second = service.call();
    assert_eq!(second.items, first.items[1..]);
    assert_eq!(finish(&world, &second).await.unwrap(), TaskOrder::Finished);
    assert_eq!(world.completed(job).await, 3);
}

#[tokio::test]
async fn nobody_leases_the_tasks_of_a_service() {
    let (world, ..) = called(files::plain_csv(3), &[]).await;
    assert!(matches!(world.task_work.lend(PRESS, "w1").await, Err(TaskError::NoSuchType(_))));
}

#[tokio::test]
async fn a_pause_and_a_cancel_reach_a_service() {
    let (world, service, job) = called(files::plain_csv(8), &[]).await;
    let calls = service.calls();
    world.pause(job).await;
    assert_eq!(beat(&world, &calls[0]).await.unwrap(), TaskOrder::Paused);
    world.task_work.release(calls[0].id, calls[0].token, false).await.unwrap();
    look_after(&world, Duration::from_secs(60)).await;
    assert!(service.calls().is_empty(), "nothing is begun while it is paused");
    world.resume(job).await;
    world.run().await;
    let again = service.call();
    assert_eq!(again.items, calls[0].items, "the other one is held");
    assert_eq!(finish(&world, &again).await.unwrap(), TaskOrder::Finished);
    world.cancel(job).await;
    assert_eq!(beat(&world, &calls[1]).await.unwrap(), TaskOrder::Stopping);
    for look in 0.. {
        assert!(look < 5, "it ends");
        look_after(&world, world.limits.sweep.stop.grace + LONG).await;
        if world.show(job).await.status == Status::Cancelled {
            break;
        }
    }
    let shown = world.show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_skipped), (4, 4));
    assert!(world.tasks.every_task().is_empty() && world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn an_item_that_is_too_large_for_a_task_fails_alone() {
    let row = |length: usize| format!("{{\"text\": \"{}\"}}\n", "\\u0001".repeat(length));
    let service = Arc::new(Service::default());
    let calls = TargetCalls { batch_items: 4, concurrency: 1, outputs: false, cancel: false };
    let press = TargetType::new(PRESS, calls, Some(service.clone())).with_tasks(TERMS);
    let limits = chunks_of(500).but(|limits| {
        limits.create.chunks.max_bytes = 8 << 20;
        limits.create.chunks.max_record_bytes = 8 << 20;
        limits.uploads.direct_max_bytes = 100 << 20;
    });
    let world = World::with_job_type(limits, |_| Some(Arc::new(press) as Arc<dyn JobType>));
    let file = world.store("application/x-ndjson", [row(450_000), row(250_000), row(250_000)].concat()).await;
    let job = world.create(PRESS, file, json!({})).await.unwrap().job_guid;
    world.run().await;
    for _ in 0..2 {
        let call = service.call();
        assert_eq!(call.items.len(), 1, "two do not fit together");
        assert_eq!(finish(&world, &call).await.unwrap(), TaskOrder::Finished);
        world.run().await;
    }
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.items_succeeded, shown.items_failed), (2, 1));
    assert_eq!(world.all_failed(job).await[0].code, "item_too_large");
}

#[tokio::test]
async fn a_task_of_a_service_counts_once_whatever_call_of_a_function_fails() {
    let failures = at_every_call(async |call, death| {
        let (world, service) = world();
        service.answers(&[Answer::Accepts, Answer::Nothing, Answer::Outcomes]);
        let file = world.store_csv(files::plain_csv(10)).await;
        let job = world.create(PRESS, file, json!({})).await.unwrap().job_guid;
        world.faults.plan(call, death);
        for look in 0.. {
            assert!(look < 60, "it ends");
            world.run_through_crashes(world.limits.split.lease()).await;
            for call in service.calls() {
                beat(&world, &call).await.ok();
                world.faults.revive();
                for _ in 0..2 {
                    finish(&world, &call).await.ok();
                    world.faults.revive();
                }
            }
            if world.show(job).await.status == Status::Completed {
                break;
            }
            world.clock.advance(LONG);
            world.sweeper.sweep().await.ok();
            world.faults.revive();
        }
        let shown = world.show(job).await;
        assert_eq!((shown.items_succeeded, shown.items_failed, shown.items_skipped), (10, 0, 0));
        assert!(world.audit(job).await.finding.is_none());
        !world.faults.is_pending()
    })
    .await;
    assert!(failures > 60, "{failures} calls failed");
}
