//! Messages to cut a file or to end a job that were given up: acted on only when nobody is at it any more.

use std::sync::Arc;
use std::time::Duration;

use acceptance::files;
use acceptance::world::{COMPLETION_PATIENCE, STALE, World};
use complete_job::complete::CompletionEnd;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use rowmill_core::model::dead_letter::DeadLetterKind;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::{Lease, StopCode};
use rowmill_core::model::messages::{CompletionMessage, SplitMessage};
use rowmill_core::model::states::Status;
use rowmill_core::ports::{Clock, JobStore};
use serde_json::json;

use crate::chunks_of;

/// Which call of settling a completion's letter takes the job's lease: after the job, the letter and the totals.
const LEASE_CALL: u64 = 3;

async fn created(world: &World, rows: u64) -> (JobGuid, SplitMessage) {
    let file = world.store("text/csv", files::plain_csv(rows)).await;
    let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
    (job, world.splits.take().remove(0))
}

async fn leased(world: &World, job: JobGuid) {
    let lease = Lease { holder: world.splitter.entropy.run_id(), until: world.clock.now() + Duration::from_secs(100) };
    world.jobs.lease(job, 1, lease, world.clock.now()).await.unwrap();
}

#[tokio::test]
async fn a_split_that_nobody_got_done_stops_its_job_and_gives_its_slots_back() {
    let world = World::new(chunks_of(1));
    let (job, split) = created(&world, 9).await;
    leased(&world, job).await;
    let letter = DeadMessage::Split(split);
    assert!(world.dead_letters.settle("letter", &letter).await.is_err(), "somebody may still be at it");
    world.clock.advance(Duration::from_secs(100));
    for _ in 0..2 {
        assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::JobStopped);
        world.clock.advance(Duration::from_secs(600));
        world.run().await;
        if world.show(job).await.status.is_terminal() {
            break;
        }
    }
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::SplitFailed.into()));
    assert_eq!((shown.item_count, shown.unprocessed.unwrap().from_row), (0, 1));
    assert_eq!(world.jobs.active("system"), 0);
    let letters = world.jobs.dead_letters(job, 10).await.unwrap();
    assert_eq!((letters.len(), &letters[0].about), (1, &DeadLetterKind::Split.into()), "recorded once");
    assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::Obsolete, "it has ended");
}

#[tokio::test]
async fn a_dead_letter_of_a_split_that_got_further_since_stops_nothing() {
    let world = World::new(chunks_of(1));
    let (job, split) = created(&world, 150).await;
    let deadline = world.clock.now() + Duration::from_secs(10);
    world.splitter.split(&split, deadline).await.unwrap();
    let end = world.dead_letters.settle("letter", &DeadMessage::Split(split)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete);
    world.run().await;
    assert_eq!((world.show(job).await.status, world.show(job).await.items_succeeded), (Status::Completed, 150));
}

#[tokio::test]
async fn a_split_given_up_after_its_first_tally_keeps_what_was_dispatched() {
    let world = World::new(chunks_of(1));
    let (job, split) = created(&world, 150).await;
    let deadline = world.clock.now() + Duration::from_secs(10);
    world.splitter.split(&split, deadline).await.unwrap();
    let continuation = world.splits.take().remove(0);
    assert_eq!(continuation.tallies, 1);
    world.dead_letters.settle("letter", &DeadMessage::Split(continuation)).await.unwrap();
    world.run().await;
    let shown = world.show(job).await;
    assert_eq!((shown.error.unwrap().code, shown.item_count), (StopCode::SplitFailed.into(), 64));
    assert_eq!((shown.item_progress, shown.unprocessed.unwrap().from_row), (64, 65));
}

#[tokio::test]
async fn a_completion_that_nobody_got_done_ends_its_job_with_its_counts() {
    let world = World::new(chunks_of(4));
    let (job, split) = created(&world, 9).await;
    world.splitter.split(&split, world.deadline()).await.unwrap();
    let early = DeadMessage::Completion(CompletionMessage::of(&world.jobs.job(job).await.unwrap()));
    assert_eq!(world.dead_letters.settle("early", &early).await.unwrap(), DeadLetterEnd::Obsolete);
    for message in world.chunks.take() {
        world.process(&message, false).await;
    }
    let letter = DeadMessage::Completion(world.completions.take().remove(0));
    let end = world.dead_letters.settle("too soon", &letter).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete, "another message of it may come again");
    world.clock.advance(COMPLETION_PATIENCE);
    leased(&world, job).await;
    assert!(world.dead_letters.settle("letter", &letter).await.is_err(), "somebody may still be at it");
    world.clock.advance(Duration::from_secs(100));
    assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::JobStopped);
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::CompletionFailed.into()));
    assert_eq!((shown.items_succeeded, shown.item_count, world.jobs.active("system")), (9, 9, 0));
    assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
}

/// A job whose results were begun to be composed, in an invocation that was too short; the message that had it begun, and
/// the one to go on.
async fn composing(world: &World) -> (JobGuid, [CompletionMessage; 2]) {
    let file = world.store("text/csv", "a,b\n".to_owned() + &"ragged\n".repeat(20)).await;
    let job = world.create("validate", file, json!({})).await.unwrap().job_guid;
    world.splitter.split(&world.splits.take()[0], world.deadline()).await.unwrap();
    for message in world.chunks.take() {
        world.process(&message, false).await;
    }
    let begun = world.completions.take().remove(0);
    let short = world.clock.now() + Duration::from_secs(10);
    assert_eq!(world.completer.complete(&begun, short).await.unwrap(), CompletionEnd::Continued);
    (job, [begun, world.completions.take().remove(0)])
}

#[tokio::test]
async fn a_letter_of_one_message_too_many_does_not_end_a_job_whose_composition_has_got_further() {
    let world = World::new(chunks_of(1));
    let (job, [begun, next]) = composing(&world).await;
    world.clock.advance(COMPLETION_PATIENCE);
    leased(&world, job).await;
    let end = world.dead_letters.settle("letter", &DeadMessage::Completion(begun)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete, "whoever is at it");
    world.clock.advance(Duration::from_secs(100));
    let end = world.completer.complete(&next, world.deadline()).await.unwrap();
    assert_eq!(end, CompletionEnd::Ended(Status::Completed));
    assert_eq!(world.show(job).await.items_failed, 20);
}

#[tokio::test]
async fn a_letter_does_not_end_a_job_whose_composition_gets_further_while_it_is_settled() {
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(1)));
        let (job, [_, message]) = composing(&world).await;
        world.clock.advance(COMPLETION_PATIENCE);
        world.faults.freeze(call, {
            let (world, message) = (Arc::clone(&world), message.clone());
            async move {
                let short = world.clock.now() + Duration::from_secs(10);
                assert!(!matches!(world.completer.complete(&message, short).await, Ok(CompletionEnd::Ended(_))));
            }
        });
        let end = world.dead_letters.settle("letter", &DeadMessage::Completion(message)).await.unwrap();
        let is_over = world.faults.thaw();
        // Under the lease of the letter nobody composes any further.
        let expected = if is_over || call > LEASE_CALL { DeadLetterEnd::JobStopped } else { DeadLetterEnd::Obsolete };
        assert_eq!(end, expected, "call {call}");
        world.run().await;
        let status = if expected == DeadLetterEnd::Obsolete { Status::Completed } else { Status::Failed };
        assert_eq!((world.show(job).await.status, world.jobs.active("system")), (status, 0), "call {call}");
        if is_over {
            break;
        }
    }
}

#[tokio::test]
async fn a_composition_on_which_every_try_fails_ends_its_job_however_often_it_is_tried() {
    let world = World::new(chunks_of(1));
    let (job, [_, lost]) = composing(&world).await;
    // Long silent; the sweep has it tried again, from where it had got to.
    world.clock.advance(STALE);
    world.sweep().await;
    let message = world.completions.take().remove(0);
    assert_eq!(message, lost);
    leased(&world, job).await;
    world.clock.advance(Duration::from_secs(100));
    let end = world.dead_letters.settle("letter", &DeadMessage::Completion(message)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::JobStopped, "a try a moment ago, which failed, does not put the end off");
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::CompletionFailed.into()));
    assert_eq!((shown.items_failed, shown.item_count), (20, 20));
}
