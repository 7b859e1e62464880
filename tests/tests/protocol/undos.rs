//! An undo leaves each record as it was before the job, or names it as kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::use_cases::UseCases;
use acceptance::world::World;
use create_job::create::{Accepted, CreateJobError};
use process_items::invocation::Invocation;
use redrive_job::redrive::RedriveJobError;
use rowmill_core::job_types::{JobTypes, NotUndoable};
use rowmill_core::model::changes::{Change, RowChange};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::ports::Clock;
use serde_json::{Map, Value, json};

use crate::chunks_of;
use crate::results::result;

pub const TIME: Duration = Duration::from_secs(300);

pub type Records = BTreeMap<String, Map<String, Value>>;

pub fn records(world: &World) -> Records {
    world.records.dataset("local/d").into_iter().map(|record| (record.key, record.fields)).collect()
}

/// A world in which readings lag.
pub fn lagging(chunk_items: u32) -> World {
    let world = World::new(chunks_of(chunk_items));
    world.records.lag();
    world
}

/// Rows whose second column names their job. Those of these keys have too few columns.
pub fn rows(job: &str, keys: impl IntoIterator<Item = u64>, bad: &[u64]) -> Vec<u8> {
    let row = |key: u64| if bad.contains(&key) { format!("{key}\n") } else { format!("{key},{job} {key}\n") };
    ("id,by\n".to_owned() + &keys.into_iter().map(row).collect::<String>()).into_bytes()
}

pub async fn create(world: &World, csv: Vec<u8>) -> JobGuid {
    world.clock.advance(Duration::from_secs(1));
    let file = world.store_csv(csv).await;
    world.create("import", file, json!({ "dataset": "d", "key": "id" })).await.unwrap().job_guid
}

pub async fn import(world: &World, csv: Vec<u8>) -> JobGuid {
    let job = create(world, csv).await;
    world.run().await;
    job
}

async fn undo(world: &World, job: JobGuid) -> Result<Accepted, CreateJobError> {
    world.creator.undo(&World::owner(), job).await
}

/// Undoes a job, and returns the undo with its lines by key.
pub async fn undone(world: &World, job: JobGuid) -> (JobGuid, BTreeMap<String, RowChange>) {
    let Accepted { job: undo, is_same } = undo(world, job).await.unwrap();
    assert!(!is_same);
    world.run().await;
    (undo.job_guid, changes_of(world, undo.job_guid).await)
}

pub async fn changes_of(world: &World, undo: JobGuid) -> BTreeMap<String, RowChange> {
    let shown = world.show(undo).await;
    assert_eq!((shown.status, shown.items_failed, shown.items_skipped), (Status::Completed, 0, 0), "{shown:?}");
    let lines = result(world, undo, "changes.jsonl").await;
    let changes: BTreeMap<String, RowChange> = lines
        .lines()
        .map(|line| serde_json::from_str::<RowChange>(line).unwrap())
        .map(|change| (change.key.clone(), change))
        .collect();
    assert_eq!((changes.len(), shown.items_succeeded), (lines.lines().count(), changes.len() as u64), "each key once");
    changes
}

pub fn keys(changes: &BTreeMap<String, RowChange>, change: Change) -> Vec<u64> {
    let mut keys: Vec<u64> =
        changes.values().filter(|line| line.change == change).map(|line| line.key.parse().unwrap()).collect();
    keys.sort_unstable();
    keys
}

/// What is there if only these files are imported, one after the other.
pub async fn without(files: &[Vec<u8>]) -> Records {
    let world = lagging(7);
    for file in files {
        import(&world, file.clone()).await;
    }
    records(&world)
}

#[tokio::test]
async fn an_undo_leaves_what_was_there_before_and_names_what_it_keeps() {
    let world = lagging(3);
    let files = [rows("base", 1..=60, &[]), rows("later", 50..=70, &[])];
    import(&world, files[0].clone()).await;
    let job = import(&world, rows("wrong", 30..=80, &[33, 34])).await;
    // A corrected row has another key, and counts as written by the job.
    let corrected = world.store_csv("id,by,row\n900,corrected,4\n").await;
    world.redrive(job, Some(corrected)).await.unwrap();
    world.run().await;
    let later = import(&world, files[1].clone()).await;
    world.outlast_runs();
    let before = records(&world);
    assert_eq!(before["900"]["by"], "corrected");

    let (undo_guid, changes) = undone(&world, job).await;
    assert_eq!(records(&world), without(&files).await);
    let expected: Vec<u64> = [30..=32, 35..=49, 71..=80, 900..=900].into_iter().flatten().collect();
    assert_eq!(keys(&changes, Change::Reversed), expected);
    assert_eq!(keys(&changes, Change::Kept), (50..=70).collect::<Vec<_>>());
    assert!(changes.values().all(|line| line.by == (line.change == Change::Kept).then_some(later)), "{changes:?}");
    let counts = world.manifest(&world.job(undo_guid).await).await.changes.expect("changes");
    assert_eq!((counts.reversed, counts.kept, counts.unchanged), (29, 21, 0));
    assert_eq!(world.show(job).await.undone_by, Some(undo_guid));

    // Again: the same undo. And no attempt of the job, whose rows would be undone.
    let again = undo(&world, job).await.unwrap();
    assert_eq!((again.job.job_guid, again.is_same), (undo_guid, true));
    assert!(matches!(world.redrive(job, None).await, Err(RedriveJobError::Undone(by)) if by == undo_guid));

    // The undo of the undo brings all back, and its undo takes it away again.
    let (second, changes) = undone(&world, undo_guid).await;
    assert_eq!((records(&world), keys(&changes, Change::Reversed)), (before, expected.clone()));
    let (_, changes) = undone(&world, second).await;
    assert_eq!((records(&world), keys(&changes, Change::Reversed)), (without(&files).await, expected));
}

#[tokio::test]
async fn an_import_beside_it_is_as_if_the_undone_one_had_not_been() {
    let (early, wrong, late) = (rows("early", 1..=40, &[]), rows("wrong", 20..=60, &[]), rows("late", 35..=45, &[]));
    // The wrong one runs first, is undone, and only then the others run.
    let world = lagging(3);
    let first = create(&world, early.clone()).await;
    let early_split = world.splits.take();
    let job = import(&world, wrong.clone()).await;
    create(&world, late.clone()).await;
    let late_split = world.splits.take();
    let (_, changes) = undone(&world, job).await;
    assert_eq!(keys(&changes, Change::Reversed).len(), 41);
    assert_eq!(records(&world), Records::new());
    for message in late_split.into_iter().chain(early_split) {
        world.splitter.split(&message, world.deadline()).await.unwrap();
    }
    world.run().await;
    assert_eq!(world.completed(first).await, 40);
    assert_eq!(records(&world), without(&[early.clone(), late.clone()]).await);

    // All of them run before the undo, the earliest last.
    let world = lagging(3);
    create(&world, early.clone()).await;
    let early_split = world.splits.take();
    let job = import(&world, wrong).await;
    world.splitter.split(&early_split[0], world.deadline()).await.unwrap();
    world.run().await;
    assert_eq!(records(&world)["20"]["by"], "wrong 20");
    undone(&world, job).await;
    assert_eq!(records(&world), without(&[early]).await);
}

#[tokio::test]
async fn a_crash_at_any_call_of_import_and_undo_changes_nothing() {
    let files = [rows("base", 1..=6, &[]), rows("later", 7..=8, &[])];
    let expected = without(&files).await;
    let deaths = at_every_call(async |call, death| {
        let world = lagging(3);
        import(&world, files[0].clone()).await;
        world.faults.plan(call, death);
        let job = create(&world, rows("wrong", 4..=9, &[])).await;
        world.run_through_crashes_and_sweeps(TIME).await;
        let later = create(&world, files[1].clone()).await;
        world.run_through_crashes_and_sweeps(TIME).await;
        assert_eq!((world.completed(job).await, world.completed(later).await), (6, 2));
        world.outlast_runs();
        let undo = loop {
            match world.mortal_creator.undo(&World::owner(), job).await {
                Ok(Accepted { job, .. }) => break job.job_guid,
                Err(error) => assert!(world.faults.revive(), "{error}"),
            }
        };
        world.run_through_crashes_and_sweeps(TIME).await;
        let changes = changes_of(&world, undo).await;
        assert_eq!(keys(&changes, Change::Reversed), [4, 5, 6, 9]);
        assert_eq!(keys(&changes, Change::Kept), [7, 8]);
        assert_eq!(records(&world), expected);
        assert_eq!(world.jobs.active("system"), 0);
        !world.faults.is_pending()
    })
    .await;
    assert!(deaths > 60, "{deaths}");
}

#[tokio::test]
async fn a_run_of_the_undone_job_that_wakes_up_late_changes_nothing() {
    let files = [rows("base", 1..=6, &[])];
    let expected = without(&files).await;
    let mut frozen = 0;
    for call in 0.. {
        let world = Arc::new(lagging(20));
        import(&world, files[0].clone()).await;
        let job = create(&world, rows("wrong", 4..=9, &[])).await;
        world.split().await;
        let [chunk] = &world.chunks.take()[..] else { panic!("one chunk") };
        // It is frozen while another run finishes the chunk, and the job is undone.
        let others = (Arc::clone(&world), chunk.clone());
        world.faults.freeze(call, async move {
            let (world, chunk) = others;
            world.outlast_runs();
            // Another process: in one, who prepares a job holds up the others.
            let (ports, records) = (world.ports(&JobTypeLimits::default()), world.records.clone());
            let job_types = JobTypes::built_in(Some(records));
            let other = UseCases { ports, limits: world.limits, job_types }.processor();
            let invocation = Invocation::new(&other.ports, &other.committer, Duration::ZERO, [(&chunk, true)]);
            other.process(&chunk, true, world.deadline(), &invocation).await.unwrap();
            world.run().await;
            undone(&world, job).await;
        });
        world.try_process(chunk, false).await.ok();
        if world.faults.thaw() {
            break;
        }
        world.run().await;
        assert_eq!(records(&world), expected, "frozen at call {call}");
        frozen += 1;
    }
    assert!(frozen > 4, "{frozen} calls");
}

#[tokio::test]
async fn an_undo_that_was_stopped_is_finished_by_the_next() {
    let world = lagging(3);
    let base = [rows("base", 1..=9, &[])];
    import(&world, base[0].clone()).await;
    let job = import(&world, rows("wrong", 1..=12, &[])).await;
    let stopped = undo(&world, job).await.unwrap().job.job_guid;
    assert_eq!(undo(&world, job).await.unwrap().job.job_guid, stopped, "while it runs");
    world.split().await;
    let chunks = world.process_first(1).await;
    world.cancel(stopped).await;
    world.process_all(&chunks).await;
    world.run().await;
    assert_eq!(world.show(stopped).await.items_skipped, 9);
    let (next, changes) = undone(&world, job).await;
    assert_ne!(next, stopped);
    assert_eq!(keys(&changes, Change::Reversed), (1..=12).collect::<Vec<_>>());
    assert_eq!(records(&world), without(&base).await);
    let again = undo(&world, job).await.unwrap();
    assert_eq!((again.job.job_guid, again.is_same), (next, true));
}

#[tokio::test]
async fn an_import_while_an_undo_runs_loses_nothing() {
    // The undo dies before it commits what it has hidden, and another import comes between.
    let world = lagging(20);
    let files = [rows("base", 1..=6, &[]), rows("later", 5..=7, &[])];
    import(&world, files[0].clone()).await;
    let job = import(&world, rows("wrong", 4..=9, &[])).await;
    let Accepted { job: undo, .. } = undo(&world, job).await.unwrap();
    world.split().await;
    let [chunk] = &world.chunks.take()[..] else { panic!("one chunk") };
    let mut call = 0;
    loop {
        world.faults.plan(call, Death::After);
        let died = world.try_process(chunk, false).await.is_err();
        world.faults.revive();
        assert!(died, "no call hides records");
        if records(&world)["4"]["by"] == "base 4" {
            break;
        }
        world.outlast_runs();
        call += 1;
    }
    import(&world, files[1].clone()).await;
    world.outlast_runs();
    world.process(chunk, true).await;
    world.run().await;
    assert_eq!(records(&world), without(&files).await);
    assert_eq!(keys(&changes_of(&world, undo.job_guid).await, Change::Reversed), (4..=9).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_an_undo_and_a_redrive_at_once_one_wins() {
    let mut redriven = [0, 0];
    for call in 0.. {
        let world = Arc::new(lagging(3));
        let job = import(&world, rows("wrong", 1..=9, &[5])).await;
        world.outlast_runs();
        let (other, taken) = (Arc::clone(&world), Arc::new(AtomicBool::new(false)));
        let redrive = Arc::clone(&taken);
        world.faults.freeze(call, async move {
            redrive.store(other.redrive(job, None).await.is_ok(), Ordering::SeqCst);
        });
        let undo = world.mortal_creator.undo(&World::owner(), job).await;
        if world.faults.thaw() {
            break;
        }
        let is_redriven = taken.load(Ordering::SeqCst);
        match undo {
            Ok(_) => assert!(!is_redriven, "both at call {call}"),
            Err(CreateJobError::JobActive(_)) => assert!(is_redriven, "none at call {call}"),
            Err(error) => panic!("{error} at call {call}"),
        }
        redriven[usize::from(is_redriven)] += 1;
        world.run().await;
        assert_eq!(records(&world).len(), if is_redriven { 8 } else { 0 });
    }
    assert!(redriven.iter().all(|times| *times > 2), "{redriven:?}");
}

#[tokio::test]
async fn two_undos_at_once_are_one_job() {
    for call in 0.. {
        let world = Arc::new(lagging(3));
        let job = import(&world, rows("wrong", 1..=9, &[])).await;
        let other = Arc::clone(&world);
        world.faults.freeze(call, async move { drop(other.creator.undo(&World::owner(), job).await.unwrap()) });
        let undo = world.mortal_creator.undo(&World::owner(), job).await.unwrap();
        if world.faults.thaw() {
            assert!(call > 5, "{call} calls");
            break;
        }
        world.run().await;
        assert_eq!(world.job(job).await.undone_by, Some(undo.job.job_guid));
        assert_eq!(keys(&changes_of(&world, undo.job.job_guid).await, Change::Reversed).len(), 9);
        assert_eq!((records(&world).len(), world.jobs.active("system")), (0, 0));
    }
}

#[tokio::test]
async fn a_stopped_job_is_undone_once_its_runs_are_over() {
    let world = lagging(3);
    let base = [rows("base", 1..=9, &[])];
    import(&world, base[0].clone()).await;
    let job = create(&world, rows("wrong", 1..=9, &[])).await;
    assert!(matches!(undo(&world, job).await, Err(CreateJobError::JobActive(_))));
    world.split().await;
    let chunks = world.process_first(1).await;
    world.cancel(job).await;
    world.process_all(&chunks).await;
    world.run().await;
    assert_eq!(world.show(job).await.items_skipped, 6);
    let Err(CreateJobError::RunsLive(until)) = undo(&world, job).await else { panic!("runs may live") };
    assert_eq!(world.job(job).await.undone_by, None, "a refusal leaves no trace");
    world.clock.advance(until.duration_since(world.clock.now()).unsigned_abs());
    let (_, changes) = undone(&world, job).await;
    assert_eq!(keys(&changes, Change::Reversed), [1, 2, 3]);
    assert_eq!(records(&world), without(&base).await);
}

#[tokio::test]
async fn what_cannot_be_undone_is_refused() {
    let world = lagging(3);
    let why = async |job| match undo(&world, job).await {
        Err(CreateJobError::NotUndoable(why)) => why,
        other => panic!("{other:?}"),
    };
    let checked = world.validate_csv(rows("x", 1..=3, &[])).await;
    let file = world.store_csv(rows("x", 1..=3, &[])).await;
    // The third one writes nothing: all of its rows are bad.
    let schema = json!({ "properties": { "id": { "const": "none" } } });
    let mut jobs = Vec::new();
    for params in [json!({ "dryRun": true }), json!({ "undo": false }), json!({ "schema": schema })] {
        let mut params = params;
        params["dataset"] = json!("e");
        jobs.push(world.create("import", file, params).await.unwrap().job_guid);
        if jobs.len() == 2 {
            world.cancel(jobs[1]).await;
        }
    }
    world.run().await;
    world.outlast_runs();
    assert_eq!(why(checked).await, NotUndoable::WritesNone("validate".to_owned()));
    assert_eq!(why(jobs[0]).await, NotUndoable::DryRun);
    assert_eq!(why(jobs[1]).await, NotUndoable::KeepsNoHistory);
    assert_eq!(why(jobs[2]).await, NotUndoable::NothingWritten);
    let unknown = JobGuid(uuid::Uuid::from_u128(7));
    assert!(matches!(undo(&world, unknown).await, Err(CreateJobError::NoSuchJob(_))));
    let request = json!({ "jobType": "undo", "params": { "jobGuid": checked } });
    let refused = world.request(request).await.unwrap_err();
    assert!(matches!(&refused, CreateJobError::Params(error) if error.field == "jobType"), "{refused}");
}

#[tokio::test]
async fn a_job_that_keeps_no_history_is_named_where_it_wrote() {
    let world = lagging(500);
    let job = import(&world, rows("wrong", 1..=9, &[])).await;
    world.clock.advance(Duration::from_secs(1));
    let file = world.store_csv(rows("plain", 4..=5, &[])).await;
    let params = json!({ "dataset": "d", "key": "id", "undo": false });
    let plain = world.create("import", file, params).await.unwrap().job_guid;
    world.run().await;
    let (_, changes) = undone(&world, job).await;
    assert_eq!(keys(&changes, Change::Kept), [4, 5]);
    assert_eq!(changes["4"].by, Some(plain));
    assert_eq!(records(&world), without(&[rows("plain", 4..=5, &[])]).await);
}
