//! Workers that take what they can get, and give nothing.

use std::time::Duration;

use acceptance::files;
use rowmill_api::task::TaskOrder;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::task::{LEASE, TaskId};
use rowmill_core::ports::Jobs;
use serde_json::json;
use work_task::error::TaskError;

use crate::tasks::{RENDER, TERMS, answer, begun, counts, finish, lent, names, offered, work};

#[tokio::test]
async fn a_thousand_leases_without_a_beat_cost_the_items_nothing() {
    let (world, job) = offered(files::plain_csv(4), json!({ "deadlineSeconds": 86_400 })).await;
    let first = lent(&world).await;
    for _ in 1..1000 {
        world.clock.advance(LEASE + Duration::from_secs(5));
        assert_eq!(names(&lent(&world).await), names(&first), "nobody has died on them");
    }
    assert_eq!((world.tasks.every_task().len(), world.jobs.job(job).await.unwrap().first_chunk_at), (1, None));
    world.clock.advance(LEASE + Duration::from_secs(5));
    work(&world).await;
    assert_eq!(world.completed(job).await, 4);
    assert!(matches!(world.task_work.beat(first.id, first.token).await, Err(TaskError::Gone(_))));
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn beats_without_an_end_hold_a_task_until_the_deadline_of_its_job() {
    let (world, job) = offered(files::plain_csv(4), json!({ "deadlineSeconds": 3600 })).await;
    let held = begun(&world).await;
    let one = &names(&held)[..1];
    world.task_work.report(held.id, held.token, Some(one), &answer(one, &[])).await.unwrap();
    let mut beats = 0;
    while let Ok(order) = world.task_work.beat(held.id, held.token).await {
        beats += 1;
        assert!(beats < 200, "the job ends: {order:?}");
        world.clock.advance(TERMS.beat);
        world.sweep_and_run().await;
    }
    assert!(beats >= 60, "{beats}");
    let row = world.jobs.job(job).await.unwrap();
    assert_eq!(row.stopped_by().map(|stop| stop.code), Some(StopCode::DeadlineExceeded));
    assert_eq!((row.is_ended(), counts(&world, job).await), (true, (1, 0, 3)));
    assert!(world.audit(job).await.finding.is_none());
}

#[tokio::test]
async fn a_token_is_worth_something_for_its_task_alone_and_until_it_is_done() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let (one, two) = (begun(&world).await, begun(&world).await);
    let no_chunk = TaskId { chunk: rowmill_core::model::tally::ChunkAddress { index: 63, ..one.id.chunk }, ..one.id };
    let past = TaskId { chunk: rowmill_core::model::tally::ChunkAddress { attempt: 2, ..one.id.chunk }, ..one.id };
    for id in [two.id, no_chunk, past] {
        assert!(matches!(world.task_work.beat(id, one.token).await, Err(TaskError::Gone(_))));
        let report = world.task_work.report(id, one.token, None, &answer(&[], &[])).await;
        assert!(matches!(report, Err(TaskError::Gone(_))), "{report:?}");
        assert!(matches!(world.task_work.release(id, one.token, true).await, Err(TaskError::Gone(_))));
    }
    assert_eq!(finish(&world, &one).await.unwrap(), TaskOrder::Finished);
    world.task_work.release(one.id, one.token, true).await.unwrap();
    assert_eq!(world.task_work.beat(one.id, one.token).await.unwrap().0, TaskOrder::Finished);
    let failed = world.task_work.report(one.id, one.token, None, &answer(&[], &names(&one))).await;
    assert_eq!(failed.unwrap(), TaskOrder::Finished, "what is reported once stays");
    assert_eq!(counts(&world, job).await, (4, 0, 0));
    assert!(world.task_work.lend(RENDER, "w1").await.unwrap().is_none());
    assert_eq!(finish(&world, &two).await.unwrap(), TaskOrder::Finished);
    world.run().await;
    assert!(matches!(world.task_work.release(one.id, one.token, true).await, Err(TaskError::Gone(_))));
    assert_eq!(counts(&world, job).await, (8, 0, 0));
}
