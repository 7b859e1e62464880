//! The usage of a job: what the process has used goes into the writes that count for a job, once.

use std::sync::atomic::{AtomicU64, Ordering};

use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_aws::sdk::usage_shares::UsageShares;
use rowmill_core::model::cost::Usage;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::job::Lease;
use rowmill_core::model::job::states::JobOutcome;
use rowmill_core::model::tally::{ChunkAddress, Commit, Committed, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{
    Admissions, CommitAnswer, Completion, Completions, CreateError, Created, Jobs, PortError, Tallies, WriteLost,
};
use rowmill_core::progress::update::update_job_ahead;
use rowmill_core::text::{Chunk, ChunkMode, Position};

use crate::dynamodb_server::Server;
use crate::lost_replies::{at, change, end, lossy_job_store, named, new_job};

const START: Position = Position { offset: 0, row: 1 };

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 7])
}

fn tally(chunks: usize) -> Tally {
    let chunk = Chunk { offset: 0, length: 10, first_row: 1, items: 5, mode: ChunkMode::Items };
    Tally::of(1, 0, START, &vec![chunk; chunks], at(2))
}

fn commit(index: u8, by: u8) -> Commit {
    Commit {
        chunk: ChunkAddress { attempt: 1, tally: 0, index },
        mark: Mark { kind: MarkKind::Clean, run: run(by) },
        counts: Counts { succeeded: 5, ..Counts::default() },
        bytes: 10,
        at: at(3),
    }
}

async fn commit_alone(store: &DynamoDbJobStore, job: JobGuid, commit: &Commit) -> Option<Committed> {
    match store.commit(job, std::slice::from_ref(commit)).await.unwrap() {
        CommitAnswer::Applied(tally) => Some(Committed::Won(tally)),
        CommitAnswer::Refused(tally) => commit.refused_by(&tally),
    }
}

fn sends(requests: u64) -> Usage {
    Usage::NONE.with_sends(requests)
}

#[tokio::test]
async fn a_job_pays_for_what_was_used_between_its_writes() {
    static COUNTED: AtomicU64 = AtomicU64::new(0);
    static SHARES: UsageShares = UsageShares::of(|| sends(COUNTED.load(Ordering::Relaxed)));
    let used = |requests| COUNTED.fetch_add(requests, Ordering::Relaxed);
    let server = Server::start().await;
    let store = server.job_store().await.metered(&SHARES);
    let new = new_job();
    let job = new.job.job_guid;
    let of_job = async |job: JobGuid| store.job(job).await.unwrap().usage;

    used(10);
    assert_eq!(store.create(&new).await.unwrap(), Created::New);
    let mut expected = sends(10) + Usage::of_transaction(6).with_sends(1);
    assert_eq!(of_job(job).await, expected);

    change(&store, job, |job| job.take(Lease { holder: run(9), until: at(50) }, at(1))).await;
    expected += Usage::of_row_writes(1);
    used(3);
    change(&store, job, |job| job.count_tally(run(9), 0, Position { offset: 20, row: 11 }, at(2))).await;
    expected += sends(3 - 1) + Usage::of_row_writes(1);
    assert_eq!(of_job(job).await, expected, "one was paid ahead");
    used(1);
    let (seen, ahead) = (store.job(job).await.unwrap(), Usage::of_row_writes(1));
    update_job_ahead(&store, &seen, ahead, |job| job.finish_split(run(9), true, at(2))).await.unwrap();
    expected += sends(1) + Usage::of_row_writes(2);
    assert_eq!(of_job(job).await, expected);

    store.put_tally(job, &tally(2)).await.unwrap();
    used(5);
    let Some(Committed::Won(first)) = commit_alone(&store, job, &commit(0, 1)).await else { panic!("lost") };
    assert_eq!(first.usage, sends(5) + Usage::of_row_writes(1));
    used(4);
    let Some(Committed::Lost(seen)) = commit_alone(&store, job, &commit(0, 2)).await else { panic!("counted twice") };
    assert_eq!(seen.usage, first.usage);
    store.touch(job, 1, 0, first.at).await.unwrap();
    let Some(Committed::Won(closed)) = commit_alone(&store, job, &commit(1, 2)).await else { panic!("lost") };
    let of_losers = sends(4) + Usage::of_row_writes(2);
    assert_eq!(closed.usage, first.usage + of_losers + Usage::of_row_writes(1), "lost: a commit and a sign of life");
    used(1);
    let totals = store.fold(job, &closed).await.unwrap();
    assert_eq!(totals.usage, closed.usage + sends(1) + Usage::of_row_writes(1));
    assert_eq!(store.fold(job, &closed).await.unwrap(), totals);

    used(2);
    let seen = store.job(job).await.unwrap();
    let mut completion = Completion { usage: totals.usage, ..end(seen, Ok(JobOutcome::Succeeded), totals.counts) };
    store.complete(&completion).await.unwrap();
    expected += totals.usage + sends(2) + Usage::of_transaction(4);
    assert_eq!(of_job(job).await, expected);
    store.complete(&completion).await.unwrap();
    assert_eq!(of_job(job).await, expected, "ended once");

    used(3);
    completion.end.finished_at = at(6);
    assert!(matches!(store.complete(&completion).await, Err(WriteLost::Condition(_))));
    let (other, full) = (named(2), named(3));
    assert_eq!(store.create(&other).await.unwrap(), Created::New);
    let of_create = Usage::of_transaction(5).with_sends(1);
    assert_eq!(of_job(other.job.job_guid).await, sends(3) + of_create, "with what the late end had used");
    used(2);
    assert!(matches!(store.create(&full).await, Err(CreateError::Full(_))));
    change(&store, other.job.job_guid, |job| job.take(Lease { holder: run(9), until: at(50) }, at(6))).await;
    let of_refused = sends(2 - 1);
    assert_eq!(of_job(other.job.job_guid).await, sends(3) + of_create + of_refused + Usage::of_row_writes(1));
}

#[tokio::test]
async fn a_share_counts_once_if_every_reply_is_lost() {
    static SHARES: UsageShares = UsageShares::of(|| sends(7));
    let (_server, store) = lossy_job_store().await;
    let store = store.metered(&SHARES);
    let job = new_job().job.job_guid;
    store.put_tally(job, &tally(1)).await.unwrap();
    let reply = store.touch(job, 1, 0, at(3)).await;
    assert!(matches!(reply, Err(PortError::Unavailable { .. })), "not sent again: {reply:?}");
    let touched = store.tally(job, 1, 0).await.unwrap();
    assert_eq!((touched.at, touched.usage), (at(3), sends(7) + Usage::of_row_writes(1)));
    let Some(Committed::WonBefore(closed)) = commit_alone(&store, job, &commit(0, 1)).await else { panic!("lost") };
    assert_eq!(closed.usage, touched.usage + Usage::of_row_writes(1));
    let totals = store.fold(job, &closed).await.unwrap();
    assert_eq!(totals.usage, closed.usage + Usage::of_row_writes(1));
}
