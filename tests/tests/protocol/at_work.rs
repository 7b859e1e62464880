//! Who works on what: the tasks of a job, the workers that have tasks, and what both tell of a job that waits.

use std::time::Duration;

use acceptance::files;
use acceptance::world::World;
use rowmill_api::at_work::{TaskAtWork, WorkerView};
use rowmill_api::task::TaskOrder;
use rowmill_core::model::at_work::TaskState;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::why::ReasonCode;
use rowmill_core::ports::{Clock, JobFilter, Tasks};
use serde_json::json;
use sweep::census::{TaskCensus, TaskCounts};
use work_task::lend::Lent;

use crate::tasks::{RENDER, TERMS, answer, begun, finish, names, offered, work};

/// All tasks of a job, read in pages of two.
async fn tasks(world: &World, job: JobGuid) -> Vec<TaskAtWork> {
    let (job, mut after, mut tasks) = (world.job(job).await, None, Vec::new());
    loop {
        let page = world.task_pages.page(&job, after, 2).await.unwrap();
        assert!(page.tasks.len() <= 2);
        tasks.extend(page.tasks);
        let Some(next) = page.next else { return tasks };
        after = Some(next.parse().unwrap());
    }
}

async fn task(world: &World, lent: &Lent) -> TaskAtWork {
    let tasks = tasks(world, lent.id.job).await;
    tasks.into_iter().find(|task| task.task_id == lent.id.to_string()).expect("the task is listed")
}

async fn workers(world: &World) -> Vec<WorkerView> {
    let list = world.task_work.workers(&[RENDER]).await.unwrap();
    assert!(list.complete);
    list.workers
}

async fn report_two(world: &World, lent: &Lent) {
    let two = &names(lent)[..2];
    let order = world.task_work.report(lent.id, lent.token, Some(two), &answer(two, &[])).await.unwrap();
    assert_eq!(order, TaskOrder::Continue);
}

#[tokio::test]
async fn the_tasks_of_a_job_tell_who_holds_them_since_when_and_how_far_they_are() {
    let (world, job) = offered(files::plain_csv(20), json!({})).await;
    let all = tasks(&world, job).await;
    assert_eq!(all.len(), 5);
    assert_eq!(all.iter().map(|task| task.items).sum::<u32>(), 20);
    assert!(all.iter().all(|task| task.state == TaskState::Offered && task.worker.is_none() && task.done == 0));
    let leased_at = world.clock.now();
    let lent = begun(&world).await;
    world.clock.advance(Duration::from_secs(20));
    report_two(&world, &lent).await;
    let held = task(&world, &lent).await;
    let expected = TaskAtWork {
        task_id: lent.id.to_string(),
        first_row: lent.items[0].row,
        items: 4,
        done: 2,
        state: TaskState::Held.into(),
        worker: Some("w1".to_owned()),
        since: Some(leased_at),
        last_beat_at: Some(world.clock.now()),
        until: Some(world.clock.now() + TERMS.patience()),
    };
    assert_eq!(held, expected);
    world.task_work.release(lent.id, lent.token, false).await.unwrap();
    let free = task(&world, &lent).await;
    assert_eq!((free.done, free.worker.as_deref(), free.until), (2, None, None), "what is reported stays done");
    assert!(free.state == TaskState::Offered);
    work(&world).await;
    assert_eq!(world.completed(job).await, 20);
    assert!(tasks(&world, job).await.is_empty(), "it has ended");
}

#[tokio::test]
async fn the_list_of_workers_adds_up_what_each_of_them_holds() {
    let (world, _) = offered(files::plain_csv(20), json!({})).await;
    assert!(workers(&world).await.is_empty());
    let since = world.clock.now();
    let first = begun(&world).await;
    report_two(&world, &first).await;
    world.clock.advance(Duration::from_secs(30));
    begun(&world).await;
    let other = world.task_work.lend(RENDER, "w2").await.unwrap().expect("a task is free");
    let w1 = WorkerView {
        worker: "w1".to_owned(),
        job_type: RENDER.to_owned(),
        tasks_held: 2,
        tasks_dead: 0,
        items: 8,
        items_done: 2,
        since,
        last_beat_at: Some(world.clock.now()),
    };
    let now = world.clock.now();
    let w2 = WorkerView {
        worker: "w2".to_owned(),
        tasks_held: 1,
        items: 4,
        items_done: 0,
        since: now,
        last_beat_at: None,
        ..w1.clone()
    };
    assert_eq!(workers(&world).await, [w1.clone(), w2]);
    world.task_work.release(other.id, other.token, false).await.unwrap();
    assert_eq!(workers(&world).await, std::slice::from_ref(&w1));
    // The first one has not beaten for long enough, and nobody has its task yet.
    world.clock.advance(TERMS.patience() - Duration::from_secs(20));
    let died = WorkerView { tasks_held: 1, tasks_dead: 1, ..w1 };
    assert_eq!(workers(&world).await, [died]);
    let again = world.task_work.lend(RENDER, "w3").await.unwrap().expect("a task is free");
    world.task_work.beat(again.id, again.token).await.unwrap();
    finish(&world, &again).await.unwrap();
    assert!(world.task_work.workers(&["mail"]).await.unwrap().workers.is_empty());
}

/// However many tasks are offered, no more of them are held than workers have leased, and each once.
#[tokio::test]
async fn no_more_tasks_are_held_than_workers_ask_for() {
    let (world, job) = offered(files::plain_csv(80), json!({})).await;
    let (mut leased, mut held_max) = (Vec::new(), 0);
    for round in 0..40_u64 {
        // Three workers, each with a task at a time. Every fifth task is left by a worker that dies.
        if leased.len() < 3
            && let Some(lent) = world.task_work.lend(RENDER, &format!("w{}", round % 3)).await.unwrap()
        {
            world.task_work.beat(lent.id, lent.token).await.unwrap();
            leased.push(lent);
        }
        if round % 2 == 1 && !leased.is_empty() {
            let lent = leased.remove(0);
            if round % 5 != 0 {
                finish(&world, &lent).await.unwrap();
            }
        }
        if round % 5 == 0 {
            world.clock.advance(TERMS.beat);
            for lent in &leased {
                world.task_work.beat(lent.id, lent.token).await.unwrap();
            }
        }
        let listed = workers(&world).await;
        let held: u64 = listed.iter().map(|worker| worker.tasks_held).sum();
        let of_job = tasks(&world, job).await.into_iter().filter(|task| task.state == TaskState::Held).count();
        // One that has died holds its task until its time is over.
        assert_eq!(of_job as u64, held, "both lists are of the same checkpoints");
        assert!((leased.len() as u64..=5).contains(&held), "{held} are held by {} workers", leased.len());
        held_max = held_max.max(held);
    }
    assert!(held_max >= 3);
}

#[tokio::test]
async fn a_job_whose_tasks_wait_tells_why() {
    let (world, job) = offered(files::plain_csv(8), json!({})).await;
    let codes = async || {
        let known = |word: &str| ReasonCode::parse(word).unwrap();
        world.why(job).await.iter().map(|reason| known(reason.code.as_str())).collect::<Vec<_>>()
    };
    use ReasonCode::*;
    assert_eq!(codes().await, [NoWorker]);
    let lent = begun(&world).await;
    assert_eq!(world.tasks.last_ask(RENDER).await.unwrap(), Some(world.clock.now()));
    assert_eq!(codes().await, [TasksHeld, TasksOffered, Running]);
    // A worker that is busy asks for nothing.
    world.clock.advance(TERMS.beat);
    world.task_work.beat(lent.id, lent.token).await.unwrap();
    world.clock.advance(TERMS.patience());
    assert_eq!(codes().await, [NoWorker, TasksHeld, Running]);
    world.clock.advance(Duration::from_secs(6));
    let reasons = world.why(job).await;
    assert_eq!(codes().await, [NoWorker, WorkerDied, Running]);
    assert_eq!(reasons[1].since, Some(world.clock.now() - TERMS.patience() - Duration::from_secs(6)));
}

fn census(world: &World, job_types: &[&str]) -> TaskCensus {
    let job_types = job_types.iter().map(|job_type| (*job_type).to_owned()).collect();
    TaskCensus { jobs: world.jobs.clone(), tasks: world.tasks.clone(), clock: world.clock.clone(), job_types }
}

#[tokio::test]
async fn the_census_counts_what_workers_could_have_what_they_hold_and_what_they_left() {
    let (world, job) = offered(files::plain_csv(20), json!({})).await;
    let began = world.clock.now();
    let count = async || census(&world, &["mail", RENDER]).count().await.unwrap().expect("types of workers");
    let counts = |offered, held, dead| TaskCounts {
        offered,
        held,
        dead,
        oldest: Duration::try_from(world.clock.now().duration_since(began)).unwrap(),
    };
    assert_eq!(census(&world, &[]).count().await.unwrap(), None);
    assert_eq!(count().await, counts(5, 0, 0));
    world.clock.advance(Duration::from_secs(7));
    let lent = begun(&world).await;
    assert_eq!(count().await, counts(4, 1, 0));
    // Its row is due at the end of the lease, and no worker looks at it: the beat is in the checkpoint.
    world.clock.advance(TERMS.beat);
    world.task_work.beat(lent.id, lent.token).await.unwrap();
    assert_eq!(count().await, counts(4, 1, 0));
    world.clock.advance(TERMS.patience() + Duration::from_secs(5));
    assert_eq!(count().await, counts(4, 0, 1));
    world.pause(job).await;
    assert_eq!(count().await, TaskCounts::default(), "no worker may have them");
}

#[tokio::test]
async fn what_a_worker_has_done_moves_the_percent_of_its_job_and_enters_no_sum() {
    let (world, job) = offered(files::plain_csv(4), json!({})).await;
    let lent = begun(&world).await;
    let done = &names(&lent)[..3];
    let report = answer(done, &[]);
    world.task_work.report(lent.id, lent.token, Some(done), &report).await.unwrap();
    let shown = world.show(job).await;
    assert_eq!((shown.items_at_work, shown.percent), (None, 0), "most chunks end within a minute");
    world.clock.advance(Duration::from_secs(60));
    let shown = world.show(job).await;
    assert_eq!((shown.items_at_work, shown.percent), (Some(3), 75));
    assert_eq!((shown.item_progress, shown.items_succeeded, shown.chunks_in_flight), (0, 0, 1));
    let filter = JobFilter { limit: 1, ..JobFilter::default() };
    let listed = world.status.list(&world.job(job).await.owner, &filter).await.unwrap();
    assert_eq!(listed.jobs[0].items_at_work, None, "a list would read too much");
    work(&world).await;
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.items_at_work, shown.items_succeeded), (Status::Completed, None, 4));
}

#[tokio::test]
async fn items_of_unfinished_chunks_count_in_the_percent_of_a_redrive() {
    let (world, job) = offered(files::plain_csv(10), json!({})).await;
    while let Some(lent) = world.task_work.lend(RENDER, "w1").await.unwrap() {
        world.task_work.beat(lent.id, lent.token).await.unwrap();
        let report = answer(&[], &names(&lent));
        world.task_work.report(lent.id, lent.token, None, &report).await.unwrap();
    }
    world.run().await;
    assert_eq!(world.show(job).await.items_failed, 10);
    world.redrive(job, None).await.unwrap();
    world.run().await;
    let lent = begun(&world).await;
    let done = &names(&lent)[..1];
    world.task_work.report(lent.id, lent.token, Some(done), &answer(done, &[])).await.unwrap();
    world.clock.advance(Duration::from_secs(60));
    let shown = world.show(job).await;
    assert_eq!((shown.items_at_work, shown.percent, shown.item_progress), (Some(1), 10, 10));
}
