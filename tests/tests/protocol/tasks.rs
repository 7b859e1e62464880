//! Tasks: workers outside of the stack lease chunks, report outcomes, die, and are told of pauses and stops.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use acceptance::faults::at_every_call;
use acceptance::files;
use acceptance::world::World;
use jiff::Timestamp;
use process_items::end::ChunkEnd;
use rowmill_api::task::TaskOrder;
use rowmill_core::job_types::TargetType;
use rowmill_core::job_types::target_type::TargetCalls;
use rowmill_core::model::dead_letter::POISON;
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner, RunId};
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::model::task::{HOLDERS_MAX, LEASE, Task, TaskTerms};
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, Entropy, Jobs, Tasks};
use rowmill_testing::in_memory::CountingEntropy;
use serde_json::{Value, json};
use work_task::error::TaskError;
use work_task::lend::Lent;

use crate::chunks_of;

pub(crate) const TERMS: TaskTerms =
    TaskTerms { beat: Duration::from_secs(60), items: 4, called: false, minimum_client: None };

pub(crate) const RENDER: &str = "render";

pub(crate) fn world() -> World {
    let calls = TargetCalls { batch_items: 1, concurrency: 1, outputs: true, cancel: false };
    let render = TargetType::new(RENDER, calls, None).with_tasks(TERMS);
    World::with_job_type(chunks_of(500), |_| Some(Arc::new(render) as Arc<dyn JobType>))
}

/// A world with a job over these rows, whose chunks are offered.
pub(crate) async fn offered(csv: Vec<u8>, fields: Value) -> (World, JobGuid) {
    let world = world();
    let file_guid = world.store_csv(csv).await;
    let mut request = json!({ "jobType": RENDER, "fileGuid": file_guid });
    request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let job = world.request(request).await.unwrap().job_guid;
    world.run().await;
    (world, job)
}

pub(crate) async fn lent(world: &World) -> Lent {
    world.task_work.lend(RENDER, "w1").await.unwrap().expect("a task is free")
}

/// A worker leases a task and says that it has begun.
pub(crate) async fn begun(world: &World) -> Lent {
    let lent = lent(world).await;
    assert_eq!(world.task_work.beat(lent.id, lent.token).await.unwrap().0, TaskOrder::Continue);
    lent
}

pub(crate) fn names(lent: &Lent) -> Vec<String> {
    lent.items.iter().map(|item| item.idempotency_key()).collect()
}

/// The answer in which these items have outputs and those failed.
pub(crate) fn answer(done: &[String], failed: &[String]) -> Vec<u8> {
    let outputs: Vec<Value> =
        done.iter().map(|name| json!({ "itemIdentifier": name, "output": { "of": name } })).collect();
    let failures: Vec<Value> =
        failed.iter().map(|name| json!({ "itemIdentifier": name, "code": "no_scene" })).collect();
    json!({ "batchItemFailures": failures, "outputs": outputs }).to_string().into_bytes()
}

pub(crate) async fn finish(world: &World, lent: &Lent) -> Result<TaskOrder, TaskError> {
    world.task_work.report(lent.id, lent.token, None, &answer(&names(lent), &[])).await
}

/// Workers process all that is offered.
pub(crate) async fn work(world: &World) {
    loop {
        while let Some(lent) = world.task_work.lend(RENDER, "w1").await.unwrap() {
            world.task_work.beat(lent.id, lent.token).await.unwrap();
            finish(world, &lent).await.unwrap();
        }
        world.run().await;
        if world.tasks.every_task().is_empty() {
            break;
        }
        world.clock.advance(TERMS.beat);
    }
}

pub(crate) async fn counts(world: &World, job: JobGuid) -> (u64, u64, u64) {
    let shown = world.show(job).await;
    (shown.items_succeeded, shown.items_failed, shown.items_skipped)
}

#[tokio::test]
async fn workers_process_a_job_and_its_results_are_those_of_any_job() {
    // The fifth row has too few cells: no worker gets it.
    let mut csv = String::from_utf8(files::plain_csv(10)).unwrap();
    let row = csv.lines().nth(5).unwrap().to_owned();
    csv = csv.replace(&row, row.split(',').next().unwrap());
    let (world, job) = offered(csv.into_bytes(), json!({})).await;
    assert_eq!(world.tasks.every_task().len(), 3, "tasks of four items");
    assert_eq!(world.jobs.job(job).await.unwrap().first_chunk_at, None, "no worker has begun");
    let (one, two) = (begun(&world).await, begun(&world).await);
    assert!(one.id != two.id && one.token != two.token);
    assert!(world.jobs.job(job).await.unwrap().first_chunk_at.is_some());
    let failed = &names(&one)[..1];
    let report = answer(&names(&one)[1..], failed);
    assert_eq!(world.task_work.report(one.id, one.token, None, &report).await.unwrap(), TaskOrder::Finished);
    assert_eq!(finish(&world, &two).await.unwrap(), TaskOrder::Finished);
    work(&world).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 8, 2));
    let row = world.jobs.job(job).await.unwrap();
    let outputs = String::from_utf8(world.result_file(&row, "outputs.jsonl").await).unwrap();
    assert_eq!(outputs.lines().count(), 8);
    assert!(outputs.lines().all(|line| line.starts_with(&format!("{{\"of\":\"{job}/"))));
    assert!(world.failed_rows(job).await.contains(&5));
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn a_task_has_one_holder_until_its_time_is_over() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let first = lent(&world).await;
    assert!(world.task_work.lend(RENDER, "w2").await.unwrap().is_none());
    world.clock.advance(LEASE + Duration::from_secs(6));
    let second = begun(&world).await;
    assert_eq!(second.items.len(), 4, "nobody has died on them");
    for late in
        [world.task_work.beat(first.id, first.token).await.map(|_| ()), finish(&world, &first).await.map(|_| ())]
    {
        assert!(matches!(late, Err(TaskError::Gone(_))), "{late:?}");
    }
    for _ in 0..5 {
        world.clock.advance(TERMS.beat);
        assert!(world.task_work.lend(RENDER, "w2").await.unwrap().is_none(), "it beats");
        world.task_work.beat(second.id, second.token).await.unwrap();
    }
    world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    assert_eq!(
        world.task_work.beat(second.id, second.token).await.unwrap().0,
        TaskOrder::Continue,
        "nobody has it yet"
    );
    assert_eq!(finish(&world, &second).await.unwrap(), TaskOrder::Finished);
    assert_eq!(finish(&world, &second).await.unwrap(), TaskOrder::Finished, "repeated");
    assert_eq!(counts(&world, job).await, (4, 0, 0));
    let foreign = RunId::from_bytes([7; RunId::BYTES]);
    assert!(matches!(world.task_work.beat(second.id, foreign).await, Err(TaskError::Gone(_))));
}

#[tokio::test]
async fn reported_items_are_done_whatever_becomes_of_their_worker() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let first = begun(&world).await;
    let two = &names(&first)[..2];
    let report = answer(two, &[]);
    for _ in 0..2 {
        let order = world.task_work.report(first.id, first.token, Some(two), &report).await.unwrap();
        assert_eq!(order, TaskOrder::Continue, "a repeated report changes nothing");
    }
    world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    let second = begun(&world).await;
    assert_eq!(names(&second), names(&first)[2..3], "the next one alone: their worker may have died on it");
    assert_eq!(finish(&world, &second).await.unwrap(), TaskOrder::Finished);
    work(&world).await;
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn outcomes_of_other_items_are_refused_and_nothing_is_taken() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let (one, two) = (begun(&world).await, begun(&world).await);
    let report = async |named: Option<&[String]>, answer: &[u8]| {
        world.task_work.report(one.id, one.token, named, answer).await.unwrap_err()
    };
    let own = names(&one);
    let others = report(Some(&names(&two)), &answer(&[], &[])).await;
    assert!(matches!(&others, TaskError::OtherItems { place: 0, expected } if expected.contains(&own[0])), "{others}");
    let swapped = [own[0].clone(), own[2].clone()];
    assert!(matches!(report(Some(&swapped), &answer(&[], &[])).await, TaskError::OtherItems { place: 1, .. }));
    let mut more = own.clone();
    more.push(own[0].clone());
    assert!(matches!(report(Some(&more), &answer(&[], &[])).await, TaskError::OtherItems { place: 4, .. }));
    for wrong in [answer(&names(&two), &[]), answer(&[], &names(&two)), answer(&own, &own[..1]), b"[]".to_vec()] {
        assert!(matches!(report(None, &wrong).await, TaskError::BadOutcomes(_)));
    }
    assert_eq!(counts(&world, job).await, (0, 0, 0));
    assert!(matches!(world.task_work.lend("validate", "w1").await, Err(TaskError::NoSuchType(_))));
}

#[tokio::test]
async fn an_item_that_every_worker_dies_on_fails_alone() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let poison = format!("{job}/2");
    let mut deaths = 0;
    while world.show(job).await.status != Status::Completed {
        let Some(lent) = world.task_work.lend(RENDER, "w1").await.unwrap() else {
            world.run().await;
            world.clock.advance(TERMS.beat);
            continue;
        };
        world.task_work.beat(lent.id, lent.token).await.unwrap();
        if names(&lent).contains(&poison) {
            deaths += 1;
            world.clock.advance(TERMS.patience() + Duration::from_secs(6));
        } else {
            finish(&world, &lent).await.unwrap();
        }
        world.run().await;
    }
    assert_eq!(deaths, 1 + HOLDERS_MAX, "once with the others, then alone");
    assert_eq!(counts(&world, job).await, (3, 1, 0));
    assert_eq!(world.all_failed(job).await[0].code, POISON);
}

#[tokio::test]
async fn an_empty_report_hides_no_death() {
    let (world, job) = offered(files::plain_csv(1), json!({})).await;
    for _ in 0..HOLDERS_MAX {
        let lent = begun(&world).await;
        let order = world.task_work.report(lent.id, lent.token, Some(&[]), &answer(&[], &[])).await.unwrap();
        assert_eq!(order, TaskOrder::Continue);
        world.clock.advance(TERMS.patience() + Duration::from_secs(6));
    }
    assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
    world.run().await;
    assert_eq!(counts(&world, job).await, (0, 1, 0));
    assert_eq!(world.all_failed(job).await[0].code, POISON);
}

#[tokio::test]
async fn nothing_is_taken_of_a_worker_that_has_not_begun() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let lent = lent(&world).await;
    assert!(matches!(finish(&world, &lent).await, Err(TaskError::NotBegun(_))));
    assert_eq!((counts(&world, job).await, world.jobs.job(job).await.unwrap().first_chunk_at), ((0, 0, 0), None));
}

#[tokio::test]
async fn a_report_in_a_pause_extends_nothing() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let held = begun(&world).await;
    world.pause(job).await;
    world.clock.advance(TERMS.beat);
    let done = &names(&held)[..1];
    world.task_work.report(held.id, held.token, Some(done), &answer(done, &[])).await.unwrap();
    world.resume(job).await;
    world.run().await;
    world.clock.advance(TERMS.patience() - TERMS.beat + Duration::from_secs(6));
    assert_eq!(names(&begun(&world).await), names(&held)[1..2]);
}

#[tokio::test]
async fn a_dry_run_needs_no_workers() {
    let (world, job) = offered(files::plain_csv(4), json!({ "params": { "dryRun": true } })).await;
    assert!(world.tasks.every_task().is_empty());
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn records_that_fit_into_no_answer_are_lent_in_parts_or_fail() {
    // A control character takes six bytes as JSON.
    let row = |length: usize| format!("{{\"text\": \"{}\"}}\n", "\u{7f}".repeat(8) + &"\\u0001".repeat(length));
    let jsonl = [row(10), row(150_000), row(150_000), row(150_000)].concat();
    let world = World::with_job_type(
        chunks_of(500).but(|limits| {
            limits.create.chunks.max_bytes = 8 << 20;
            limits.create.chunks.max_record_bytes = 8 << 20;
            limits.uploads.direct_max_bytes = 100 << 20;
        }),
        |_| {
            let calls = TargetCalls { batch_items: 1, concurrency: 1, outputs: true, cancel: false };
            Some(Arc::new(TargetType::new(RENDER, calls, None).with_tasks(TERMS)) as Arc<dyn JobType>)
        },
    );
    let file = world.store("application/x-ndjson", jsonl).await;
    let job = world.create(RENDER, file, json!({})).await.unwrap().job_guid;
    world.run().await;
    let lent = begun(&world).await;
    assert_eq!(lent.items.len(), 3, "the fourth does not fit with them");
    assert_eq!(finish(&world, &lent).await.unwrap(), TaskOrder::Finished);
    work(&world).await;
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn an_item_with_a_transient_error_is_lent_again_and_then_fails() {
    let (world, job) = offered(files::plain_csv(3), json!({})).await;
    for lease in 1..=3 {
        let lent = begun(&world).await;
        let failure = json!({ "itemIdentifier": format!("{job}/2"), "code": "busy", "transient": true });
        let report = json!({ "batchItemFailures": [failure] }).to_string().into_bytes();
        assert_eq!(names(&lent)[0], format!("{job}/{}", if lease == 1 { 1 } else { 2 }), "lease {lease}");
        world.task_work.report(lent.id, lent.token, None, &report).await.unwrap();
    }
    work(&world).await;
    assert_eq!(counts(&world, job).await, (2, 1, 0));
    assert_eq!(world.all_failed(job).await[0].code, "busy");
}

#[tokio::test]
async fn a_pause_reaches_a_worker_and_a_resume_offers_what_is_left() {
    let (world, job) = offered(files::plain_csv(12), json!({})).await;
    let held = begun(&world).await;
    world.pause(job).await;
    assert!(world.task_work.lend(RENDER, "w2").await.unwrap().is_none(), "nothing of a paused job is lent");
    world.run().await;
    assert_eq!(world.tasks.every_task().len(), 1, "the other ones have gone back, and are dropped");
    assert_eq!(world.task_work.beat(held.id, held.token).await.unwrap().0, TaskOrder::Paused);
    let done = &names(&held)[..1];
    assert_eq!(
        world.task_work.report(held.id, held.token, Some(done), &answer(done, &[])).await.unwrap(),
        TaskOrder::Paused
    );
    world.task_work.release(held.id, held.token, false).await.unwrap();
    world.resume(job).await;
    world.run().await;
    assert_eq!(world.tasks.every_task().len(), 3);
    work(&world).await;
    assert_eq!((world.show(job).await.status, counts(&world, job).await), (Status::Completed, (12, 0, 0)));
}

#[tokio::test]
async fn a_worker_that_was_lent_a_task_before_a_pause_does_not_begin_in_it() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let held = lent(&world).await;
    world.pause(job).await;
    assert_eq!(world.task_work.beat(held.id, held.token).await.unwrap().0, TaskOrder::Paused);
    assert_eq!(world.jobs.job(job).await.unwrap().first_chunk_at, None);
}

#[tokio::test]
async fn a_cancel_keeps_what_is_reported_and_skips_the_rest() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let held = begun(&world).await;
    let done = &names(&held)[..3];
    world.task_work.report(held.id, held.token, Some(done), &answer(done, &[])).await.unwrap();
    world.cancel(job).await;
    assert_eq!(world.task_work.beat(held.id, held.token).await.unwrap().0, TaskOrder::Stopping);
    world.task_work.release(held.id, held.token, false).await.unwrap();
    while world.show(job).await.status != Status::Cancelled {
        assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
        world.run().await;
    }
    assert_eq!(counts(&world, job).await, (3, 0, 5));
    assert!(matches!(finish(&world, &held).await, Err(TaskError::Gone(_))));
}

#[tokio::test]
async fn a_message_of_a_stopped_job_waits_for_the_worker_that_is_at_its_chunk() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let (held, not_begun) = (begun(&world).await, lent(&world).await);
    let message = |of: &Lent| {
        let task = world.tasks.every_task().into_iter().find(|task| task.id() == of.id);
        task.expect("its task").message
    };
    let messages = [message(&held), message(&not_begun)];
    world.cancel(job).await;
    assert!(world.try_process(&messages[0], true).await.is_err(), "it is delivered again");
    assert!(matches!(world.process(&messages[1], false).await, ChunkEnd::Committed(_)), "nobody has begun");
    let done = &names(&held)[..1];
    world.task_work.report(held.id, held.token, Some(done), &answer(done, &[])).await.unwrap();
    world.task_work.release(held.id, held.token, false).await.unwrap();
    assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
    world.run().await;
    assert_eq!((world.show(job).await.status, counts(&world, job).await), (Status::Cancelled, (1, 0, 7)));
    assert_eq!(world.task_work.beat(not_begun.id, not_begun.token).await.ok(), None);
}

#[tokio::test]
async fn what_is_reported_of_a_cancelled_job_counts_if_no_worker_asks_again() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let held = begun(&world).await;
    let done = &names(&held)[..3];
    world.task_work.report(held.id, held.token, Some(done), &answer(done, &[])).await.unwrap();
    world.cancel(job).await;
    for look in 0.. {
        assert!(look < 5, "it ends");
        world.sweep_and_run().await;
        if world.show(job).await.status == Status::Cancelled {
            break;
        }
        world.clock.advance(world.limits.sweep.stop.grace);
    }
    assert_eq!(counts(&world, job).await, (3, 0, 5));
    assert!(world.audit(job).await.finding.is_none());
    assert!(world.tasks.every_task().is_empty());
}

/// A lease is no begin. The first beat is.
#[tokio::test]
async fn only_a_first_beat_ends_the_time_within_which_a_job_must_start() {
    for begins in [false, true] {
        let (world, job) = offered(files::plain_csv(4), json!({ "startWithinSeconds": 600 })).await;
        world.clock.advance(Duration::from_secs(590));
        let lent = world.task_work.lend(RENDER, "w1").await.unwrap().unwrap();
        if begins {
            world.task_work.beat(lent.id, lent.token).await.unwrap();
        }
        world.clock.advance(Duration::from_secs(11));
        world.sweep_and_run().await;
        let row = world.jobs.job(job).await.unwrap();
        assert_eq!(row.stopped_by().map(|stop| stop.code), (!begins).then_some(StopCode::CapacityExceeded));
        if begins {
            finish(&world, &lent).await.unwrap();
            assert_eq!(world.run_and_show(job).await.items_succeeded, 4);
        } else {
            assert_eq!(world.task_work.beat(lent.id, lent.token).await.unwrap().0, TaskOrder::Stopping, "too late");
        }
    }
}

#[tokio::test]
async fn a_job_that_no_worker_begins_lacks_capacity() {
    let (world, job) = offered(files::plain_csv(4), json!({ "deadlineSeconds": 600 })).await;
    world.clock.advance(Duration::from_secs(601));
    for _ in 0..3 {
        world.sweep_and_run().await;
        world.clock.advance(Duration::from_secs(400));
    }
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!(row.stopped_by().map(|stop| stop.code), Some(StopCode::CapacityExceeded));
    assert_eq!((row.is_ended(), counts(&world, job).await), (true, (0, 0, 4)));
    assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
    assert!(world.tasks.every_task().is_empty(), "of a past attempt nothing is left");
}

#[tokio::test]
async fn a_lost_task_is_offered_again_by_the_sweep() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let task = world.tasks.every_task().remove(0);
    rowmill_core::ports::Tasks::remove(&*world.tasks, &task).await.unwrap();
    world.clock.advance(2 * world.limits.sweep.recovery.stale);
    world.sweep_and_run().await;
    work(&world).await;
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn a_message_of_a_held_task_changes_nothing() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let held = begun(&world).await;
    let message = world.tasks.every_task().remove(0).message;
    assert_eq!(world.process(&message, true).await, ChunkEnd::Offered);
    assert!(world.task_work.lend(RENDER, "w2").await.unwrap().is_none());
    assert_eq!(finish(&world, &held).await.unwrap(), TaskOrder::Finished);
    assert_eq!(world.process(&message, true).await, ChunkEnd::Repeated);
    assert_eq!(world.completed(job).await, 4);
}

#[tokio::test]
async fn the_task_of_a_worker_that_died_is_lent_again_within_twice_its_beat() {
    let (world, _) = offered(files::plain_csv(4), json!({})).await;
    let lent = world.task_work.lend(RENDER, "w1").await.unwrap().unwrap();
    world.task_work.beat(lent.id, lent.token).await.unwrap();
    world.clock.advance(TERMS.beat);
    assert!(world.task_work.lend(RENDER, "w2").await.unwrap().is_none(), "it may be alive");
    world.clock.advance(TERMS.beat);
    assert_eq!(world.task_work.lend(RENDER, "w2").await.unwrap().unwrap().id, lent.id);
}

/// Chance in place of the one half of tests.
#[derive(Default)]
struct Chance {
    names: CountingEntropy,
    asked: AtomicU32,
}

impl Entropy for Chance {
    fn job_guid(&self, now: Timestamp) -> JobGuid {
        self.names.job_guid(now)
    }

    fn file_guid(&self) -> FileGuid {
        self.names.file_guid()
    }

    fn run_id(&self) -> RunId {
        self.names.run_id()
    }

    fn fraction(&self) -> f64 {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        (f64::from(asked) * 0.618_034).fract()
    }
}

#[tokio::test]
async fn owners_take_turns() {
    let mut world = world();
    world.task_work.entropy = Arc::new(Chance::default());
    let mut turns = BTreeMap::from([("owner-2", 0), ("owner-5", 0)]);
    for _ in 0..100 {
        for (owner, first) in turns.keys().zip([0, 50]) {
            for tally in first..first + 11 {
                let message = rowmill_testing::fixtures::chunk_message(tally, 0);
                let message = ChunkMessage { owner: Owner((*owner).to_owned()), ..message };
                let due_at = Clock::now(&*world.clock);
                let task = Task { job_type: RENDER.to_owned(), message, due_at, called: false, holder: None };
                Tasks::offer(&*world.tasks, &task, world.deadline()).await.unwrap();
            }
        }
        // The jobs of these tasks do not exist: each of the ten looks of a request removes one.
        assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
        let left = world.tasks.every_task();
        assert_eq!(left.len(), 12, "a request looks at ten tasks");
        for (owner, taken) in &mut turns {
            *taken += u32::from(left.iter().filter(|task| task.message.owner.0 == *owner).count() == 1);
        }
    }
    // Between the places of these two owners lie 8 % of all places on one side, and 92 % on the other.
    assert!(turns.values().all(|taken| *taken > 30), "{turns:?}");
}

#[tokio::test]
async fn a_task_of_a_worker_counts_once_whatever_call_of_the_function_fails() {
    let failures = at_every_call(async |call, death| {
        let (world, job) = offered(files::plain_csv(6), json!({ "tolerance": { "count": 5 } })).await;
        world.faults.plan_failure(call, death);
        let mut turns = 0;
        while world.show(job).await.status != Status::Completed {
            turns += 1;
            assert!(turns < 50, "it ends");
            let Ok(Some(lent)) = world.task_work.lend(RENDER, "w1").await else {
                world.run_through_crashes(world.limits.split.lease()).await;
                world.clock.advance(TERMS.patience());
                continue;
            };
            let one = &names(&lent)[..1];
            let failed = answer(&[], one);
            for _ in 0..2 {
                world.task_work.beat(lent.id, lent.token).await.ok();
                world.task_work.report(lent.id, lent.token, Some(one), &failed).await.ok();
            }
            let rest = answer(&names(&lent)[1..], &[]);
            let rest = if lent.items.len() > 1 { rest } else { answer(&[], &[]) };
            for _ in 0..3 {
                world.task_work.report(lent.id, lent.token, None, &rest).await.ok();
            }
            world.run_through_crashes(world.limits.split.lease()).await;
        }
        let (succeeded, failed, skipped) = counts(&world, job).await;
        assert_eq!((succeeded + failed, skipped), (6, 0));
        assert!(failed >= 2, "one item of each task");
        assert!(world.audit(job).await.finding.is_none());
        !world.faults.is_pending()
    })
    .await;
    assert!(failures > 40, "{failures} calls failed");
}

#[tokio::test]
async fn no_task_is_lost_if_a_worker_and_its_function_die_at_any_call() {
    at_every_call(async |call, death| {
        let (world, job) = offered(files::plain_csv(6), json!({})).await;
        world.faults.plan(call, death);
        let lent = world.task_work.lend(RENDER, "w1").await.ok().flatten();
        if let Some(lent) = &lent {
            world.task_work.beat(lent.id, lent.token).await.ok();
            finish(&world, lent).await.ok();
        }
        if !world.faults.revive() {
            return false;
        }
        world.clock.advance(TERMS.patience() + Duration::from_secs(6));
        work(&world).await;
        world.clock.advance(2 * world.limits.sweep.recovery.stale);
        world.sweep_and_run().await;
        assert_eq!((world.show(job).await.status, counts(&world, job).await), (Status::Completed, (6, 0, 0)));
        assert!(world.audit(job).await.finding.is_none());
        true
    })
    .await;
}
