use super::fixtures::{change, created, ended, guid, new_job, stop};
use crate::contract::at;
use rowmill_core::model::job::{Job, StopCode};
use rowmill_core::ports::{Due, JobStore, NewJob, WAKE_SHARDS};

/// The jobs due by this second, shard by shard.
async fn due(store: &impl JobStore, second: i64) -> Vec<Due> {
    let mut all = Vec::new();
    for shard in 0..WAKE_SHARDS {
        all.extend(store.due(shard, at(second), 100).await.unwrap());
    }
    all
}

pub async fn a_job_is_due_from_its_wake_time_on(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    assert!(due(store, 899).await.is_empty());
    for second in [900, 9_000] {
        assert_eq!(due(store, second).await, [Due { job, at: at(900) }]);
    }
}

pub async fn every_job_is_due_in_one_shard(store: &impl JobStore) {
    for number in 1..=40 {
        created(store, number, "me").await;
    }
    let mut jobs: Vec<_> = due(store, 900).await.iter().map(|due| due.job).collect();
    jobs.sort();
    assert!(jobs.into_iter().eq((1..=40).map(guid)));
    assert!(store.due(0, at(900), 100).await.unwrap().len() < 40, "they are spread");
}

pub async fn jobs_that_have_been_due_longest_are_listed_first(store: &impl JobStore) {
    for number in 1..=40 {
        let new = new_job(number, "me");
        let wake_at = Some(at(900 + i64::from(number * 7 % 40)));
        store.create(&NewJob { job: Job { wake_at, ..new.job }, ..new }).await.unwrap();
    }
    for shard in 0..WAKE_SHARDS {
        let all = store.due(shard, at(2_000), 100).await.unwrap();
        assert!(all.is_sorted_by_key(|due| due.at));
        for limit in [0, 1, 2] {
            let first = store.due(shard, at(2_000), limit).await.unwrap();
            assert_eq!(first, all[..limit.min(all.len())]);
        }
    }
    assert!(due(store, 919).await.iter().all(|due| due.at <= at(919)));
    assert_eq!(due(store, 919).await.len(), 20);
}

pub async fn a_stopped_job_is_due_at_once(store: &impl JobStore) {
    for (number, code) in [(1, StopCode::Cancelled), (2, StopCode::SourceChanged)] {
        let job = created(store, number, "me").await;
        change(store, job, |job| job.stop(&stop(code))).await;
    }
    assert!(due(store, 6).await.is_empty());
    let mut stopped = due(store, 7).await;
    stopped.sort_by_key(|due| due.job);
    assert_eq!(stopped, [1, 2].map(|number| Due { job: guid(number), at: at(7) }));
}

pub async fn an_ended_job_is_not_due(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let seen = due(store, 900).await[0];
    let ended = ended(store, job, 20).await;
    assert!(due(store, 9_000).await.is_empty());
    store.put_off(seen, at(9_000)).await.unwrap();
    assert_eq!(store.job(job).await.unwrap(), ended);
}

pub async fn a_claimed_job_is_due_again_later(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    change(store, job, |job| job.claim(at(900), at(1_900), 3)).await;
    assert!(due(store, 1_899).await.is_empty());
    assert_eq!(due(store, 1_900).await, [Due { job, at: at(1_900) }]);
}

pub async fn a_job_is_put_off_only_if_its_wake_time_is_unchanged(store: &impl JobStore) {
    let job = created(store, 1, "me").await;
    let before = store.job(job).await.unwrap();
    for (job, second) in [(job, 899), (job, 901), (guid(2), 900)] {
        store.put_off(Due { job, at: at(second) }, at(2_000)).await.unwrap();
    }
    assert_eq!(store.job(job).await.unwrap(), before);
    assert!(store.job(guid(2)).await.is_err(), "nor is one made");
    store.put_off(Due { job, at: at(900) }, at(2_000)).await.unwrap();
    let after = Job { wake_at: Some(at(2_000)), revision: before.revision + 1, ..before };
    assert_eq!(store.job(job).await.unwrap(), after);
}
