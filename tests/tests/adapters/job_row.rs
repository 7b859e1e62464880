//! Many who write one job row at the same time.

use futures::future::join_all;
use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::job::{Job, Lease, Resent, Stop, StopCode};
use rowmill_core::ports::{Admissions, Jobs};
use rowmill_core::progress::update::{Updated, update_job};
use rowmill_core::text::Position;

use crate::dynamodb_server::Server;
use crate::lost_replies::{at, change, new_job};

async fn running() -> (Server, DynamoDbJobStore, Job) {
    let server = Server::start().await;
    let store = server.job_store().await;
    let new = new_job();
    store.create(&new).await.unwrap();
    let lease = Lease { holder: RunId::from_bytes([1; 7]), until: at(500) };
    let job = change(&store, new.job.job_guid, |job| job.take(lease, at(1))).await;
    (server, store, job)
}

#[tokio::test]
async fn five_hundred_runs_that_stop_one_job_are_answered_and_one_of_them_stops_it() {
    let (_server, jobs, seen) = running().await;
    let stops = (0..500).map(|run| {
        let (jobs, seen) = (&jobs, &seen);
        async move {
            let stop = Stop::because(StopCode::SourceChanged, format!("by run {run}"), at(run));
            update_job(jobs, seen, |job| job.stop(&stop)).await.unwrap()
        }
    });
    let stopped = join_all(stops).await;
    assert_eq!(stopped.iter().filter(|stopped| matches!(stopped, Updated::Now(_))).count(), 1);
    assert_eq!(jobs.job(seen.job_guid).await.unwrap().revision, seen.revision + 1);
}

#[tokio::test]
async fn fifty_clients_pause_and_resume_a_job_while_it_is_split_and_none_is_lost() {
    let (_server, jobs, seen) = running().await;
    let clients = join_all((0..50).map(|client| {
        let (jobs, seen) = (&jobs, &seen);
        async move {
            // Each takes effect: what one finds done it undoes.
            let step = |job: &Job| job.resume(at(client)).or_else(|| job.pause(at(client)));
            update_job(jobs, seen, step).await.unwrap().done().is_ok()
        }
    }));
    let splitter = async {
        let (mut job, mut counted, mut resent) = (seen.clone(), 0, 0);
        while counted < 20 {
            let (holder, number) = (job.lease.unwrap().holder, job.split.tallies);
            let end = Position { offset: 1 + u64::from(number), row: 2 + u64::from(number) };
            let count = |job: &Job| job.count_tally(holder, number, end, at(600));
            match update_job(&jobs, &job, count).await.unwrap().done() {
                Ok(now) => (job, counted) = (now, counted + 1),
                // Paused: a splitter would end here. Or resumed: it counts no tally before the resend has ended.
                Err(_) => {
                    job = jobs.job(job.job_guid).await.unwrap();
                    let all = Resent { epoch: job.epoch, from: None, next: None };
                    let noted = update_job(&jobs, &job, |job| job.note_resent(all, at(600))).await.unwrap().done();
                    resent += u64::from(noted.is_ok());
                }
            }
        }
        resent
    };
    let (clients, resent) = tokio::join!(clients, splitter);
    assert!(clients.into_iter().all(|took_effect| took_effect));
    let after = jobs.job(seen.job_guid).await.unwrap();
    assert_eq!((after.epoch, after.status(), after.split.tallies), (50, Status::Running, 20));
    assert_eq!(after.revision, seen.revision + 70 + resent, "each took effect once");
}
