//! Dead letters of split and completion messages. They take effect only when no run works on the job any more.

use std::sync::Arc;
use std::time::Duration;

use acceptance::copies::chunk_messages;
use acceptance::files;
use acceptance::world::{World, change};
use complete_job::complete::CompletionEnd;
use dead_letter::settle::{DeadLetterEnd, DeadMessage};
use rowmill_core::model::dead_letter::DeadLetterKind;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::messages::{CompletionMessage, SplitMessage};
use rowmill_core::ports::{Clock, DeadLetters, Jobs};
use uuid::Uuid;

use crate::chunks_of;

/// The call that takes the job's lease while a completion's dead letter is settled. The calls before it are for the
/// job, the letter and the totals.
const LEASE_CALL: u64 = 3;

const LEASED_FOR: Duration = Duration::from_secs(100);

/// A world with this many items per chunk, a job over this many rows, and its message.
async fn created(max_items: u32, rows: u64) -> (World, JobGuid, SplitMessage) {
    let world = World::new(chunks_of(max_items));
    let job = world.validate_csv(files::plain_csv(rows)).await;
    let split = world.splits.take().remove(0);
    (world, job, split)
}

#[tokio::test]
async fn a_dead_letter_of_a_split_stops_its_job_and_returns_its_slots() {
    let (world, job, split) = created(1, 9).await;
    world.take_up(job, LEASED_FOR).await;
    let letter = DeadMessage::Split(split);
    assert!(world.dead_letters.settle("letter", &letter).await.is_err(), "a run may still hold the lease");
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
    assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::Obsolete, "job has ended");
}

#[tokio::test]
async fn a_dead_letter_of_a_split_that_has_progressed_since_is_obsolete() {
    let (world, job, split) = created(1, 150).await;
    let deadline = world.deadline_in(Duration::from_secs(10));
    world.splitter.split(&split, deadline).await.unwrap();
    world.take_up(job, LEASED_FOR).await;
    let end = world.dead_letters.settle("letter", &DeadMessage::Split(split)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete, "the run that has the lease is of no concern");
    world.clock.advance(LEASED_FOR);
    assert_eq!(world.completed(job).await, 150);
}

#[tokio::test]
async fn a_dead_letter_of_a_split_from_before_a_resume_does_not_stop_the_job() {
    let (world, job, split) = created(1, 9).await;
    world.pause(job).await;
    world.resume(job).await;
    let letter = DeadMessage::Split(split);
    assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::Obsolete);
    assert_eq!(world.completed(job).await, 9);
}

#[tokio::test]
async fn a_resume_at_any_call_of_the_settling_keeps_the_job_from_being_stopped() {
    for call in 0.. {
        let (world, job, split) = created(1, 9).await;
        let (jobs, clock) = (world.jobs.clone(), world.clock.clone());
        world.faults.freeze(call, async move {
            let row = jobs.job(job).await.expect("the job is there");
            if row.is_ended() || row.is_stopped() {
                return;
            }
            change(&*jobs, job, |job| job.pause(clock.now())?.resume(clock.now())).await;
        });
        world.dead_letters.settle("letter", &DeadMessage::Split(split)).await.ok();
        let row = world.jobs.job(job).await.unwrap();
        if world.faults.thaw() {
            break;
        }
        assert!(!row.is_stopped() || row.epoch == 0, "call {call}: it was resumed, and then stopped");
    }
}

#[tokio::test]
async fn a_dead_letter_of_a_chunk_from_before_a_pause_is_obsolete_in_it_and_after_it() {
    let (world, job, split) = created(1, 9).await;
    world.splitter.split(&split, world.deadline()).await.unwrap();
    let before = DeadMessage::Chunk(world.chunks.take().remove(0));
    let settle = async || world.dead_letters.settle("letter", &before).await.unwrap();
    world.pause(job).await;
    assert_eq!(settle().await, DeadLetterEnd::Obsolete, "a resume sends it again");
    world.resume(job).await;
    assert_eq!(settle().await, DeadLetterEnd::Obsolete);
    assert!(world.isolated.take().is_empty(), "the resend sends the chunk");
    assert_eq!(world.completed(job).await, 9);
}

#[test]
fn a_dead_letter_is_read_as_what_it_says_that_it_is() {
    let chunk = chunk_messages(JobGuid(Uuid::nil()), b"a\n1\n", 1).remove(0);
    let read = |text: &str| serde_json::from_str::<DeadMessage>(text);
    let text = serde_json::to_string(&chunk).unwrap();
    assert_eq!(read(&text).unwrap(), DeadMessage::Chunk(chunk));
    let unknown = text.replace("\"fresh\"", "\"later\"");
    assert_ne!(text, unknown);
    assert!(read(&unknown).is_err(), "a chunk of a later version is no completion");
}

#[tokio::test]
async fn after_a_split_is_given_up_its_dispatched_items_count() {
    let (world, job, split) = created(1, 150).await;
    let deadline = world.deadline_in(Duration::from_secs(10));
    world.splitter.split(&split, deadline).await.unwrap();
    let continuation = world.splits.take().remove(0);
    assert_eq!(continuation.tallies, 1);
    world.dead_letters.settle("letter", &DeadMessage::Split(continuation)).await.unwrap();
    let shown = world.run_and_show(job).await;
    assert_eq!((shown.error.unwrap().code, shown.item_count), (StopCode::SplitFailed.into(), 64));
    assert_eq!((shown.item_progress, shown.unprocessed.unwrap().from_row), (64, 65));
}

#[tokio::test]
async fn a_dead_letter_of_a_completion_ends_its_job_with_its_counts() {
    let (world, job, split) = created(4, 9).await;
    world.splitter.split(&split, world.deadline()).await.unwrap();
    let early = DeadMessage::Completion(CompletionMessage::of(&world.jobs.job(job).await.unwrap()));
    assert_eq!(world.dead_letters.settle("early", &early).await.unwrap(), DeadLetterEnd::Obsolete);
    world.process_queued().await;
    let letter = DeadMessage::Completion(world.take_completion());
    let end = world.dead_letters.settle("too soon", &letter).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete, "another message of the completion may still arrive");
    world.clock.advance(world.limits.dead_letter.completion_patience());
    world.take_up(job, LEASED_FOR).await;
    assert!(world.dead_letters.settle("letter", &letter).await.is_err(), "a run may still hold the lease");
    world.clock.advance(Duration::from_secs(100));
    assert_eq!(world.dead_letters.settle("letter", &letter).await.unwrap(), DeadLetterEnd::JobStopped);
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::CompletionFailed.into()));
    assert_eq!((shown.items_succeeded, shown.item_count, world.jobs.active("system")), (9, 9, 0));
    assert_eq!(world.jobs.job(job).await.unwrap().completions, 1);
}

/// A job with partly composed results, because the invocation was too short. Returns the message that began the
/// composition and the one that continues it.
async fn composing(world: &World) -> (JobGuid, [CompletionMessage; 2]) {
    let job = world.validate_csv("a,b\n".to_owned() + &"ragged\n".repeat(20)).await;
    let begun = world.run_to_completion_message().await;
    let short = world.deadline_in(Duration::from_secs(10));
    assert_eq!(world.completer.complete(&begun, short).await.unwrap(), CompletionEnd::Continued);
    (job, [begun, world.take_completion()])
}

#[tokio::test]
async fn a_redundant_dead_letter_does_not_end_a_job_whose_composition_has_progressed() {
    let world = World::new(chunks_of(1));
    let (job, [begun, next]) = composing(&world).await;
    world.clock.advance(world.limits.dead_letter.completion_patience());
    world.take_up(job, LEASED_FOR).await;
    let end = world.dead_letters.settle("letter", &DeadMessage::Completion(begun)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::Obsolete, "even while a run holds the lease");
    world.clock.advance(Duration::from_secs(100));
    let end = world.completer.complete(&next, world.deadline()).await.unwrap();
    assert_eq!(end, CompletionEnd::Ended(Status::Completed));
    assert_eq!(world.show(job).await.items_failed, 20);
}

#[tokio::test]
async fn a_dead_letter_does_not_end_a_job_whose_composition_progresses_meanwhile() {
    for call in 0.. {
        let world = Arc::new(World::new(chunks_of(1)));
        let (job, [_, message]) = composing(&world).await;
        world.clock.advance(world.limits.dead_letter.completion_patience());
        world.faults.freeze(call, {
            let (world, message) = (Arc::clone(&world), message.clone());
            async move {
                let short = world.deadline_in(Duration::from_secs(10));
                assert!(!matches!(world.completer.complete(&message, short).await, Ok(CompletionEnd::Ended(_))));
            }
        });
        let end = world.dead_letters.settle("letter", &DeadMessage::Completion(message)).await.unwrap();
        let is_over = world.faults.thaw();
        // While the dead-letter function holds the lease, no completer continues the composition.
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
async fn a_composition_that_always_fails_ends_its_job_despite_recent_tries() {
    let world = World::new(chunks_of(1));
    let (job, [_, lost]) = composing(&world).await;
    // The job has had no sign of life: the sweep resends its completion, which continues the composition.
    world.clock.advance(world.limits.sweep.recovery.stale);
    world.sweep().await;
    let message = world.take_completion();
    assert_eq!(message, lost);
    world.take_up(job, LEASED_FOR).await;
    world.clock.advance(Duration::from_secs(100));
    let end = world.dead_letters.settle("letter", &DeadMessage::Completion(message)).await.unwrap();
    assert_eq!(end, DeadLetterEnd::JobStopped, "a recent failed try does not postpone the end");
    let shown = world.show(job).await;
    assert_eq!((shown.status, shown.error.unwrap().code), (Status::Failed, StopCode::CompletionFailed.into()));
    assert_eq!((shown.items_failed, shown.item_count), (20, 20));
}
