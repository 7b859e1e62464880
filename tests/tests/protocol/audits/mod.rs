//! The audit: what it proves, and what it finds.

mod cursors;
mod damage;

use std::time::Duration;

use acceptance::world::World;
use rowmill_core::model::audit::{AuditProof, AuditVerdict};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::states::Status;
use rowmill_core::ports::Tallies;
use serde_json::json;

use crate::chunks_of;

/// The rows that are ragged in [`file`].
const BAD_ROWS: [u64; 4] = [2, 4, 66, 70];

/// A file of 70 rows, four of them ragged: two tallies, if a chunk has one row.
fn file() -> String {
    let rows = (1..=70).map(|row| if BAD_ROWS.contains(&row) { format!("{row}\n") } else { format!("{row},x\n") });
    format!("a,b\n{}", rows.collect::<String>())
}

/// A `transform` job over that file, not started: each item that succeeds has an output.
async fn created(world: &World) -> JobGuid {
    let upload = world.store_csv(file()).await;
    world.create("transform", upload, json!({ "mapping": [{ "drop": "b" }] })).await.unwrap().job_guid
}

/// The same job when it has ended.
async fn ended(world: &World) -> JobGuid {
    let job = created(world).await;
    world.run().await;
    job
}

/// The ended job after a redrive that corrected two of the four failed rows.
async fn redriven(world: &World) -> JobGuid {
    let job = ended(world).await;
    world.correct(job, "a,b,row\n2,x,2\n66,x,66\n").await;
    world.run().await;
    job
}

/// Fails unless the audit has this verdict, and the counts of the job as it is shown.
async fn agrees(world: &World, job: JobGuid, verdict: AuditVerdict) -> AuditProof {
    let (audit, shown) = (world.audit(job).await, world.show(job).await);
    assert_eq!((&audit.verdict, &audit.finding), (&verdict.into(), &None), "{audit:?}");
    let counts = (audit.items_succeeded, audit.items_failed, audit.items_skipped);
    assert_eq!(counts, (shown.items_succeeded, shown.items_failed, shown.items_skipped));
    assert_eq!(audit.item_count, shown.item_count);
    assert_eq!(audit.chunks, audit.chunks_committed + audit.chunks_skipped + audit.chunks_open);
    audit
}

#[tokio::test]
async fn an_ended_job_is_proved_with_its_counts_over_all_attempts() {
    for items in [1, 3, 500] {
        let world = World::new(chunks_of(items));
        let job = ended(&world).await;
        let first = agrees(&world, job, AuditVerdict::Proved).await;
        assert_eq!((first.items_succeeded, first.items_failed, first.chunks_open), (66, 4, 0));
        for attempt in 2..4 {
            world.redrive(job, None).await.unwrap();
            world.run().await;
            let again = agrees(&world, job, AuditVerdict::Proved).await;
            assert_eq!((again.attempt, again.items_failed), (attempt, 4));
            assert_ne!(again.evidence, first.evidence);
        }
        world.correct(job, "a,b,row\n2,x,2\n66,x,66\n").await;
        world.run().await;
        let last = agrees(&world, job, AuditVerdict::Proved).await;
        assert_eq!((last.items_succeeded, last.items_failed), (68, 2));
        assert_eq!(world.audit(job).await, last, "the same evidence gives the same proof");
    }
}

#[tokio::test]
async fn an_empty_job_and_those_that_nobody_took_up_are_proved() {
    let world = World::new(chunks_of(3));
    let job = world.validate_csv("a,b\n").await;
    world.run().await;
    let audit = agrees(&world, job, AuditVerdict::Proved).await;
    assert_eq!((audit.tallies, audit.item_count), (0, 0));
    let job = created(&world).await;
    world.cancel(job).await;
    world.run().await;
    agrees(&world, job, AuditVerdict::Proved).await;

    let upload = world.store_csv(file()).await;
    let job = world.create_with(upload, json!({ "deadlineSeconds": 60 })).await.job_guid;
    world.clock.advance(Duration::from_secs(60));
    world.sweep().await;
    assert_eq!(world.show(job).await.status, Status::Failed);
    agrees(&world, job, AuditVerdict::Proved).await;
}

#[tokio::test]
async fn a_cancelled_job_is_proved_whether_its_chunks_were_skipped_with_marks_or_without() {
    let world = World::new(chunks_of(1));
    let job = created(&world).await;
    world.split().await;
    let chunks = world.process_first(10).await;
    world.cancel(job).await;
    world.process_all(&chunks[60..]).await;
    agrees(&world, job, AuditVerdict::Active).await;
    // The other messages are lost: after the grace the sweep closes their tally without them.
    world.clock.advance(world.limits.sweep.stop.grace + world.limits.sweep.recovery.stale);
    for _ in 0..4 {
        world.sweep().await;
        world.clock.advance(world.limits.sweep.recovery.stale);
    }
    world.run().await;
    let audit = agrees(&world, job, AuditVerdict::Proved).await;
    assert_eq!((audit.items_succeeded, audit.items_failed, audit.items_skipped), (8, 2, 60));
    assert_eq!((audit.chunks_committed, audit.chunks_skipped), (20, 50));
    // A redrive that is stopped leaves what it did not reach as failed.
    world.redrive(job, None).await.unwrap();
    world.split().await;
    world.cancel(job).await;
    world.run().await;
    agrees(&world, job, AuditVerdict::Proved).await;
}

#[tokio::test]
async fn a_running_job_gives_no_false_alarm_at_any_step() {
    let world = World::new(chunks_of(1));
    let job = created(&world).await;
    agrees(&world, job, AuditVerdict::Active).await;
    world.split().await;
    for chunk in world.chunks.take() {
        let audit = agrees(&world, job, AuditVerdict::Active).await;
        assert_eq!(audit.chunks_committed, chunk.address.number());
        world.process(&chunk, false).await;
    }
    agrees(&world, job, AuditVerdict::Active).await;
    world.run().await;
    agrees(&world, job, AuditVerdict::Proved).await;
    world.redrive(job, None).await.unwrap();
    agrees(&world, job, AuditVerdict::Active).await;
    world.split().await;
    for chunk in world.chunks.take() {
        agrees(&world, job, AuditVerdict::Active).await;
        world.process(&chunk, false).await;
    }
    world.run().await;
    agrees(&world, job, AuditVerdict::Proved).await;
}

#[tokio::test]
async fn a_tally_that_is_put_and_not_counted_yet_is_no_alarm() {
    let world = World::new(chunks_of(1));
    let job = created(&world).await;
    world.split().await;
    world.jobs.edit_job(job, |row| {
        row.split.tallies = 1;
        row.split.cursor.row = 65;
    });
    let second = world.jobs.tally(job, 1, 1).await.unwrap();
    world.jobs.edit_job(job, |row| row.split.cursor = second.start);
    let audit = world.audit(job).await;
    assert_eq!((audit.verdict, audit.tallies), (AuditVerdict::Active.into(), 1));
}

#[tokio::test]
async fn an_earlier_attempt_whose_objects_have_expired_is_taken_from_its_tallies() {
    let world = World::new(chunks_of(1));
    let job = redriven(&world).await;
    agrees(&world, job, AuditVerdict::Proved).await;
    world.objects.expire(&format!("results/{job}/1/"));
    let audit = world.audit(job).await;
    assert_eq!(audit.verdict, AuditVerdict::Refuted, "nothing can have expired yet");
    // As long after its creation as a job is kept after its end, the first objects may have expired.
    world.clock.advance(world.limits.jobs.retention);
    let audit = agrees(&world, job, AuditVerdict::ProvedInPart).await;
    assert_eq!((audit.tallies, audit.tallies_expired), (3, 2));
    world.objects.expire(&format!("results/{job}/2/chunks"));
    assert_eq!(
        world.audit(job).await.verdict,
        AuditVerdict::Refuted,
        "those of the last attempt live as long as the job"
    );
}
