//! A deleted job is seen by nobody, and everything of it is erased, and nothing of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::faults::{Death, at_every_call};
use acceptance::use_cases::{Limits, UseCases};
use acceptance::world::{World, change};
use cancel_job::error::ChangeError;
use create_job::create::CreateJobError;
use create_job::request::CreateJobRequest;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use process_items::invocation::Invocation;
use redrive_job::redrive::RedriveJobError;
use rowmill_core::job_types::{JobTypes, NotUndoable};
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::keys;
use rowmill_core::ports::{
    Clock, ERASE_SHARD, JobStore, Jobs, ObjectErasures, Objects, PortError, Reading, RecordStore, WakeUps,
};
use serde_json::json;

use crate::chunks_of;

/// A file of which two rows fail.
const FILE: &str = "id,name\n1,a\n2\n3,c\n4,d\n5\n6,f\n7,g\n";

/// The use cases of `cancel-job` and `erase-job` over the ports of a world, in a process that can crash.
fn use_cases(world: &World) -> UseCases {
    let ports = world.crashing(&JobTypeLimits::default(), &world.faults);
    UseCases { ports, limits: world.limits, job_types: JobTypes::built_in(None) }
}

/// The same in a process that lives on.
fn faultless(world: &World) -> UseCases {
    UseCases { ports: world.ports(&JobTypeLimits::default()), ..use_cases(world) }
}

async fn delete(world: &World, job: JobGuid) -> Result<(), ChangeError> {
    use_cases(world).changer().delete(&World::owner(), job).await
}

/// Time passes until nobody can be at work on a job that is deleted now.
fn outlast(world: &World) {
    world.clock.advance(world.limits.sweep.recovery.stale + Duration::from_secs(60));
}

async fn erase(world: &World) -> u64 {
    let (erased, failure) = use_cases(world).eraser().erase_due().await;
    assert!(failure.is_none(), "{failure:?}");
    erased.jobs
}

/// A job that has ended, with failed items.
async fn ended(world: &World) -> JobGuid {
    let job = world.validate_csv(FILE).await;
    world.run().await;
    job
}

/// The objects and the number of rows of a job.
fn left_of(world: &World, job: JobGuid) -> (Vec<String>, usize) {
    let of_job = keys::of_job(job);
    let objects: BTreeSet<String> = world.objects.keys().into_iter().filter(|key| key.starts_with(&of_job)).collect();
    (objects.into_iter().collect(), world.jobs.rows(job))
}

async fn owned(world: &World, job: JobGuid) -> Result<Job, PortError> {
    let jobs: &dyn JobStore = &*world.jobs;
    jobs.owned(&World::owner(), job, world.clock.now()).await
}

fn nothing() -> (Vec<String>, usize) {
    (Vec::new(), 0)
}

#[tokio::test]
async fn nobody_sees_a_deleted_job_and_nothing_of_it_is_left() {
    let world = World::new(chunks_of(2));
    let (job, other) = (ended(&world).await, ended(&world).await);
    world.redrive(job, None).await.unwrap();
    world.run().await;
    let others = left_of(&world, other);
    assert!(left_of(&world, job).0.len() > 5 && others.1 > 3, "{others:?}");

    delete(&world, job).await.unwrap();
    let owner = World::owner();
    assert!(matches!(owned(&world, job).await, Err(PortError::NotFound)));
    assert!(matches!(world.redrive(job, None).await, Err(RedriveJobError::UnknownJob(_))));
    assert!(matches!(world.creator.undo(&owner, job).await, Err(CreateJobError::NoSuchJob(_))));
    assert!(matches!(delete(&world, job).await, Err(ChangeError::Unknown(_))), "again");
    assert!(owned(&world, other).await.is_ok());

    assert_eq!(erase(&world).await, 0, "a function may still be at work on it");
    outlast(&world);
    assert_eq!(erase(&world).await, 1);
    assert_eq!(left_of(&world, job), nothing());
    assert_eq!(left_of(&world, other), others);
    assert_eq!(world.objects.keys().iter().filter(|key| key.starts_with("uploads/")).count(), 2, "the uploads stay");
    outlast(&world);
    assert_eq!(erase(&world).await, 0);
}

#[tokio::test]
async fn a_job_that_has_not_ended_or_is_of_others_is_not_deleted() {
    let world = World::new(chunks_of(2));
    let job = world.validate_csv(FILE).await;
    assert!(matches!(delete(&world, job).await, Err(ChangeError::Active)));
    world.pause(job).await;
    assert!(matches!(delete(&world, job).await, Err(ChangeError::Active)));
    world.resume(job).await;
    world.run().await;
    let others = use_cases(&world).changer().delete(&Owner("others".into()), job).await;
    assert!(matches!(others, Err(ChangeError::Unknown(_))));
    outlast(&world);
    assert_eq!(erase(&world).await, 0);
    assert_eq!(world.show(job).await.status, Status::Completed);
}

#[tokio::test]
async fn a_death_at_any_call_leaves_a_job_that_is_erased_later() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(2));
        let job = ended(&world).await;
        delete(&world, job).await.unwrap();
        outlast(&world);
        world.faults.plan(call, death);
        let (_, failure) = use_cases(&world).eraser().erase_due().await;
        if world.faults.is_pending() {
            return false;
        }
        world.faults.revive();
        assert!(failure.is_some());
        outlast(&world);
        erase(&world).await;
        assert_eq!(left_of(&world, job), nothing());
        true
    })
    .await;
    assert!(deaths > 12, "{deaths} deaths");
}

/// A job that has ended, and is kept for ten minutes.
async fn kept(world: &World) -> JobGuid {
    let file = world.store_csv(FILE).await;
    let job = world.create_with(file, json!({ "keepSeconds": 600 })).await.job_guid;
    world.run().await;
    job
}

#[tokio::test]
async fn a_job_that_is_kept_for_a_time_of_its_own_is_deleted_when_that_is_over() {
    let world = World::new(chunks_of(2));
    let (job, other) = (kept(&world).await, ended(&world).await);
    let others = left_of(&world, other);
    let view = world.show(job).await;
    assert_eq!(view.expires_at, view.finished_at.map(|at| at + Duration::from_secs(600)));
    world.clock.advance(Duration::from_secs(599));
    assert_eq!(erase(&world).await, 0);

    // A redrive ends it anew.
    world.redrive(job, None).await.unwrap();
    assert_eq!(world.show(job).await.expires_at, None);
    world.clock.advance(Duration::from_secs(100));
    erase(&world).await;
    world.run().await;
    world.clock.advance(Duration::from_secs(599));
    assert_eq!(erase(&world).await, 0);
    assert!(owned(&world, job).await.is_ok());

    // A lagging index shows it as due by the end of the attempt before.
    let (now, due) = (world.clock.now(), world.jobs.job(job).await.unwrap().wake_at);
    for (at, why) in [(Some(now), "before its time is over"), (due, "as it was")] {
        change(&*world.jobs, job, |job| Some(Job { wake_at: at, ..job.clone() })).await;
        assert_eq!(erase(&world).await, 0, "{why}");
        assert!(owned(&world, job).await.is_ok(), "{why}");
    }

    world.clock.advance(Duration::from_secs(1));
    assert!(matches!(owned(&world, job).await, Err(PortError::NotFound)), "before anybody deletes it");
    assert!(matches!(world.redrive(job, None).await, Err(RedriveJobError::UnknownJob(_))));
    assert_eq!(erase(&world).await, 0, "a function may still be at work on it");
    outlast(&world);
    assert_eq!(erase(&world).await, 1);
    assert_eq!((left_of(&world, job), left_of(&world, other)), (nothing(), others));
}

#[tokio::test]
async fn a_death_at_any_call_leaves_an_expired_job_that_is_erased_later() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(2));
        let job = kept(&world).await;
        world.clock.advance(Duration::from_secs(600));
        world.faults.plan(call, death);
        for _ in 0..2 {
            use_cases(&world).eraser().erase_due().await;
            outlast(&world);
        }
        if world.faults.is_pending() {
            return false;
        }
        world.faults.revive();
        for _ in 0..2 {
            erase(&world).await;
            outlast(&world);
        }
        assert_eq!(left_of(&world, job), nothing());
        true
    })
    .await;
    assert!(deaths > 16, "{deaths} deaths");
}

#[tokio::test]
async fn of_an_expiry_and_a_redrive_at_once_one_wins() {
    let mut redriven = [0, 0];
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(2)));
        let job = kept(&world).await;
        world.clock.advance(Duration::from_secs(599));
        let (other, taken) = (Arc::clone(&world), Arc::new(AtomicBool::new(false)));
        let (expiry, eraser) = (Arc::clone(&taken), faultless(&world));
        world.faults.freeze(call, async move {
            other.clock.advance(Duration::from_secs(1));
            eraser.eraser().erase_due().await;
            expiry.store(other.job(job).await.deleted_at.is_some(), Ordering::SeqCst);
        });
        let redrive = world.redrive(job, None).await;
        if world.faults.thaw() {
            break;
        }
        assert_ne!(redrive.is_ok(), taken.load(Ordering::SeqCst), "call {call}: {redrive:?}");
        redriven[usize::from(redrive.is_ok())] += 1;
        world.run().await;
        outlast(&world);
        erase(&world).await;
        outlast(&world);
        erase(&world).await;
        assert_eq!(left_of(&world, job), nothing());
    }
    assert!(redriven.iter().all(|times| *times > 0), "{redriven:?}");
}

#[tokio::test]
async fn a_deletion_that_dies_is_done_or_not() {
    let deaths = at_every_call(async |call, death| {
        let world = World::new(chunks_of(2));
        let job = ended(&world).await;
        world.faults.plan(call, death);
        let died = delete(&world, job).await.is_err();
        if world.faults.is_pending() {
            return false;
        }
        world.faults.revive();
        assert!(died);
        match delete(&world, job).await {
            Ok(()) | Err(ChangeError::Unknown(_)) => {}
            Err(error) => panic!("{error}"),
        }
        outlast(&world);
        assert_eq!(erase(&world).await, 1);
        assert_eq!(left_of(&world, job), nothing());
        true
    })
    .await;
    assert!(deaths > 2, "{deaths} deaths");
}

#[tokio::test]
async fn of_a_deletion_and_a_redrive_at_once_one_wins() {
    let mut redriven = [0, 0];
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(2)));
        let job = ended(&world).await;
        let (other, taken) = (Arc::clone(&world), Arc::new(AtomicBool::new(false)));
        let (redrive, faultless) = (Arc::clone(&taken), faultless(&world));
        world.faults.freeze(call, async move {
            let redriven = faultless.redriver().redrive(&World::owner(), job, &Default::default()).await;
            redrive.store(redriven.is_ok(), Ordering::SeqCst);
        });
        let deleted = delete(&world, job).await;
        if world.faults.thaw() {
            break;
        }
        let is_redriven = taken.load(Ordering::SeqCst);
        match deleted {
            Ok(()) => assert!(!is_redriven, "both at call {call}"),
            Err(ChangeError::Active) => assert!(is_redriven, "none at call {call}"),
            Err(error) => panic!("{error} at call {call}"),
        }
        redriven[usize::from(is_redriven)] += 1;
        other.run().await;
        outlast(&world);
        assert_eq!(erase(&world).await, u64::from(!is_redriven));
    }
    assert!(redriven[1] > 0, "{redriven:?}");
    // The other way round: a redrive that was asked for before finds no job.
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(2)));
        let job = ended(&world).await;
        let (other, taken) = (Arc::clone(&world), Arc::new(AtomicBool::new(false)));
        let (deleted, faultless) = (Arc::clone(&taken), faultless(&world));
        world.faults.freeze(call, async move {
            let done = faultless.changer().delete(&World::owner(), job).await;
            deleted.store(done.is_ok(), Ordering::SeqCst);
        });
        let redrive = world.redrive(job, None).await;
        if world.faults.thaw() {
            assert!(call > 2, "{call} calls");
            break;
        }
        assert_ne!(redrive.is_ok(), taken.load(Ordering::SeqCst), "call {call}: {redrive:?}");
        other.run().await;
        outlast(&world);
        // What the redrive had stored before goes too.
        assert_eq!(erase(&world).await, u64::from(redrive.is_err()));
        if redrive.is_err() {
            assert_eq!(left_of(&world, job), nothing());
        }
    }
}

#[tokio::test]
async fn what_a_run_writes_after_the_deletion_is_erased() {
    // A run that is frozen at any of its calls, while its job is cancelled and deleted.
    let mut frozen = 0;
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(3)));
        let job = world.validate_csv(FILE).await;
        world.split().await;
        let chunks = world.chunks.take();
        let other = Arc::clone(&world);
        world.faults.freeze(call, async move {
            let functions = faultless(&other);
            functions.changer().cancel(&World::owner(), job, false).await.unwrap();
            other.clock.advance(Duration::from_secs(400));
            let sweeper = functions.sweeper();
            for _ in 0..20 {
                sweeper.sweep().await.unwrap();
                for message in other.completions.take() {
                    let limit = other.deadline();
                    functions.completer().complete(&message, limit).await.unwrap();
                }
                other.clock.advance(Duration::from_secs(400));
                if other.jobs.every_job().iter().all(|job| job.is_ended()) {
                    break;
                }
            }
            functions.changer().delete(&World::owner(), job).await.unwrap();
        });
        // The time limit of the run is over, but it goes on.
        world.try_process(&chunks[0], false).await.ok();
        if world.faults.thaw() {
            break;
        }
        frozen += 1;
        outlast(&world);
        erase(&world).await;
        assert_eq!(left_of(&world, job), nothing(), "frozen at call {call}");
        // Messages that come later have no effect.
        for chunk in &chunks {
            world.try_process(chunk, true).await.ok();
            let settled = world.dead_letters.settle("m", &DeadMessage::Chunk(chunk.clone())).await;
            assert_eq!(settled.unwrap(), DeadLetterEnd::Obsolete);
        }
        assert_eq!(left_of(&world, job), nothing(), "frozen at call {call}");
    }
    assert!(frozen > 2, "{frozen} calls");
}

#[tokio::test]
async fn a_repeated_request_does_not_find_its_deleted_job_and_one_that_does_the_same_creates_another() {
    let world = World::new(chunks_of(2));
    let file = world.store_csv(FILE).await;
    let request = json!({ "jobType": "validate", "fileGuid": file, "dedupe": "file" });
    let request: CreateJobRequest = serde_json::from_value(request).unwrap();
    let create = async |key| world.creator.create(&World::owner(), &request, key).await.map(|job| job.job_guid);
    let job = create(Some("key")).await.unwrap();
    world.run().await;
    assert_eq!(create(Some("key")).await.unwrap(), job);
    delete(&world, job).await.unwrap();
    outlast(&world);
    for _ in 0..2 {
        let again = create(Some("key")).await;
        assert!(matches!(again, Err(CreateJobError::Port(PortError::NotFound))), "{again:?}");
        erase(&world).await;
    }
    assert_ne!(create(None).await.unwrap(), job, "what it did is done again");
}

#[tokio::test]
async fn a_dead_letter_of_a_deleted_job_is_not_recorded() {
    let world = World::new(chunks_of(3));
    let job = world.validate_csv(FILE).await;
    world.split().await;
    let chunks = world.chunks.take();
    world.process_all(&chunks).await;
    world.run().await;
    delete(&world, job).await.unwrap();
    let rows = world.jobs.rows(job);
    let settled = world.dead_letters.settle("m", &DeadMessage::Chunk(chunks[0].clone())).await;
    assert_eq!((settled.unwrap(), world.jobs.rows(job)), (DeadLetterEnd::Obsolete, rows));
}

#[tokio::test]
async fn a_row_that_cannot_be_erased_does_not_keep_the_others() {
    let world = World::new(chunks_of(3));
    let jobs = [ended(&world).await, ended(&world).await, ended(&world).await];
    for job in jobs {
        delete(&world, job).await.unwrap();
    }
    outlast(&world);
    // The first job fails, and the others are erased.
    world.faults.plan_failure(3, Death::Before);
    let (erased, failure) = use_cases(&world).eraser().erase_due().await;
    assert_eq!((erased.jobs, erased.failed, failure.is_some()), (2, 1, true));
    assert!(world.jobs.due(ERASE_SHARD, world.clock.now(), 9).await.unwrap().is_empty(), "not at once");
    world.clock.advance(Duration::from_secs(400));
    assert_eq!(erase(&world).await, 1);
    for job in jobs {
        assert_eq!(left_of(&world, job), nothing());
    }
}

pub mod datasets {
    use super::*;

    const TIME: Duration = Duration::from_secs(300);

    fn records(world: &World) -> BTreeMap<String, String> {
        let records = world.records.dataset("local/d").into_iter();
        records.map(|record| (record.key, record.fields["by"].as_str().unwrap_or_default().to_owned())).collect()
    }

    /// What is stored, also what readers do not see: each text of it.
    pub async fn stored(world: &World) -> String {
        let dataset = world.records.opened("local/d").await.unwrap().unwrap();
        let mut stored = String::new();
        for partition in 0..dataset.partitions {
            let page =
                world.records.page(&dataset, partition, Default::default(), 1000, Reading::Latest).await.unwrap();
            stored += &page.records.iter().map(|record| format!("{record:?}\n")).collect::<String>();
        }
        stored
    }

    fn rows(by: &str, keys: impl IntoIterator<Item = u64>) -> String {
        "id,by\n".to_owned() + &keys.into_iter().map(|key| format!("{key},{by}\n")).collect::<String>()
    }

    async fn create(world: &World, csv: String) -> JobGuid {
        world.clock.advance(Duration::from_secs(1));
        let file = world.store_csv(csv).await;
        world.create("import", file, json!({ "dataset": "d", "key": "id" })).await.unwrap().job_guid
    }

    async fn import(world: &World, csv: String) -> JobGuid {
        let job = create(world, csv).await;
        world.run().await;
        job
    }

    async fn delete_dataset(world: &World) -> JobGuid {
        world.clock.advance(Duration::from_secs(1));
        world.creator.delete_dataset(&World::owner(), "d").await.unwrap().job.job_guid
    }

    async fn listed(world: &World) -> usize {
        world.records.datasets(&World::owner(), None, 9).await.unwrap().datasets.len()
    }

    #[tokio::test]
    async fn a_deletion_counts_the_records_and_leaves_none() {
        let world = World::new(chunks_of(7));
        world.records.lag();
        import(&world, rows("alpha", 1..=40)).await;
        let second = import(&world, rows("beta", 30..=60)).await;
        world.creator.undo(&World::owner(), second).await.unwrap();
        world.run().await;
        assert_eq!((records(&world).len(), listed(&world).await), (40, 1));
        let job = delete_dataset(&world).await;
        assert_eq!(listed(&world).await, 0);
        world.run().await;
        let shown = world.show(job).await;
        // Those that the undo has hidden are deleted, too.
        assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 60, 0), "{shown:?}");
        assert_eq!(stored(&world).await, "");
        // What is stored of the deletion are keys.
        for key in world.objects.keys().iter().filter(|key| key.starts_with(&keys::of_job(job))) {
            let text = String::from_utf8_lossy(&world.objects.read(key).await.unwrap()).into_owned();
            assert!(!text.contains("alpha") && !text.contains("beta"), "{key}: {text}");
        }
        let undo = world.creator.undo(&World::owner(), job).await;
        assert!(matches!(undo, Err(CreateJobError::NotUndoable(NotUndoable::WritesNone(_)))), "{undo:?}");
        // It can be written again.
        import(&world, rows("third", 1..=3)).await;
        assert_eq!((records(&world).len(), listed(&world).await), (3, 1));
    }

    #[tokio::test]
    async fn after_its_undo_was_deleted_a_job_is_undone_by_another_one() {
        for waits in [false, true] {
            let world = World::new(chunks_of(7));
            let job = import(&world, rows("alpha", 1..=4)).await;
            let undo = async || world.creator.undo(&World::owner(), job).await.unwrap().job.job_guid;
            let first = undo().await;
            world.run().await;
            assert_eq!((undo().await, records(&world).len()), (first, 0), "again, it is the same");
            delete(&world, first).await.unwrap();
            if waits {
                outlast(&world);
                assert_eq!(erase(&world).await, 1);
            }
            let second = undo().await;
            assert_ne!(second, first, "a name does not come back");
            world.run().await;
            assert_eq!((world.show(second).await.status, records(&world).len()), (Status::Completed, 0));
        }
    }

    #[tokio::test]
    async fn only_what_is_there_is_deleted_by_its_owner() {
        let world = World::new(chunks_of(7));
        for name in ["d", "", "../d", "other/d"] {
            let refused = world.creator.delete_dataset(&World::owner(), name).await;
            assert!(matches!(refused, Err(CreateJobError::NoSuchDataset(_))), "{name}");
        }
        import(&world, rows("alpha", 1..=4)).await;
        let refused = world.creator.delete_dataset(&Owner("others".into()), "d").await;
        assert!(matches!(refused, Err(CreateJobError::NoSuchDataset(_))));
        for params in [json!({}), json!({ "dataset": "d" })] {
            let refused = world.request(json!({ "jobType": "delete", "params": params })).await;
            assert!(matches!(&refused, Err(CreateJobError::Params(error)) if error.field == "jobType"), "{refused:?}");
        }
        assert_eq!(records(&world).len(), 4);
    }

    #[tokio::test]
    async fn what_a_later_job_writes_stays_and_holds_nothing_of_before() {
        let world = World::new(chunks_of(3));
        import(&world, rows("alpha", 1..=9)).await;
        let deletion = delete_dataset(&world).await;
        world.split().await;
        let chunks = world.chunks.take();
        // After the deletion has read the keys, and before it deletes them.
        let later = import(&world, rows("later", 5..=12)).await;
        assert!(stored(&world).await.contains("alpha"));
        world.process_all(&chunks).await;
        world.run().await;
        let shown = world.show(deletion).await;
        assert_eq!((shown.status, shown.items_succeeded), (Status::Completed, 9));
        let expected: BTreeMap<String, String> = (5..=12).map(|key| (key.to_string(), "later".to_owned())).collect();
        assert_eq!(records(&world), expected);
        assert!(!stored(&world).await.contains("alpha"), "{}", stored(&world).await);
        assert_eq!(listed(&world).await, 1, "the later job has opened it again");
        // So its undo leaves nothing.
        world.creator.undo(&World::owner(), later).await.unwrap();
        world.run().await;
        assert_eq!(records(&world), BTreeMap::new());
    }

    #[tokio::test]
    async fn a_death_at_any_call_of_a_deletion_deletes_each_record_and_counts_it_once() {
        let deaths = at_every_call(async |call, death| {
            let world = World::new(chunks_of(4));
            world.records.lag();
            import(&world, rows("alpha", 1..=10)).await;
            let job = delete_dataset(&world).await;
            world.faults.plan(call, death);
            world.run_through_crashes(TIME).await;
            let happened = !world.faults.is_pending();
            let shown = world.show(job).await;
            assert_eq!((shown.status, shown.items_succeeded, shown.items_failed), (Status::Completed, 10, 0));
            assert_eq!(stored(&world).await, "");
            happened
        })
        .await;
        assert!(deaths > 40, "{deaths} deaths");
    }

    #[tokio::test]
    async fn a_run_that_wakes_up_late_deletes_nothing_that_was_written_since() {
        let mut frozen = 0;
        for call in 0.. {
            let world = Arc::new(World::new(chunks_of(20)));
            import(&world, rows("alpha", 1..=6)).await;
            delete_dataset(&world).await;
            world.split().await;
            let [chunk] = &world.chunks.take()[..] else { panic!("one chunk") };
            let (other, message) = (Arc::clone(&world), chunk.clone());
            let done = Arc::new(AtomicBool::new(false));
            let imported = Arc::clone(&done);
            world.faults.freeze(call, async move {
                let job_types = JobTypes::built_in(Some(other.records.clone()));
                let functions =
                    UseCases { ports: other.ports(&JobTypeLimits::default()), limits: other.limits, job_types };
                let processor = functions.processor();
                let invocation = Invocation::new(&processor.ports, &processor.committer, TIME, [(&message, true)]);
                processor.process(&message, true, other.deadline(), &invocation).await.unwrap();
                let job = create(&other, rows("later", 3..=8)).await;
                for message in other.splits.take().into_iter().filter(|message| message.job_guid == job) {
                    functions.splitter().split(&message, other.deadline()).await.unwrap();
                }
                for message in other.chunks.take() {
                    let invocation = Invocation::new(&processor.ports, &processor.committer, TIME, [(&message, false)]);
                    processor.process(&message, false, other.deadline(), &invocation).await.unwrap();
                }
                imported.store(true, Ordering::SeqCst);
            });
            world.try_process(chunk, false).await.ok();
            if world.faults.thaw() {
                break;
            }
            world.run().await;
            // A run whose batch takes too long is given up, with what it waits for.
            let written = if done.load(Ordering::SeqCst) { 3..9 } else { 0..0 };
            let expected: BTreeMap<String, String> = written.map(|key| (key.to_string(), "later".to_owned())).collect();
            assert_eq!(records(&world), expected, "frozen at call {call}");
            frozen += 1;
        }
        assert!(frozen > 4, "{frozen} calls");
    }
}

#[tokio::test]
async fn an_erasure_that_has_too_little_time_goes_on_later() {
    let world = World::new(Limits::default().but(|limits| limits.create.chunks.max_items = 1));
    let job = ended(&world).await;
    delete(&world, job).await.unwrap();
    outlast(&world);
    let mut eraser = use_cases(&world).eraser();
    eraser.limits.time = Duration::ZERO;
    assert_eq!(eraser.erase_due().await.0.jobs, 0);
    // An object is gone already.
    world.objects.erase_objects(&keys::of_job(job)).await.unwrap();
    assert_eq!(erase(&world).await, 1);
    assert_eq!(left_of(&world, job), nothing());
}
