use super::fixtures::{change, created, end, end_at, guid, leased, new_job, stop};
use crate::contract::at;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::model::job::StopCode;
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::ports::{Created, JobFilter, JobPage, JobStore, PortError, StateFilter};

async fn listed(store: &impl JobStore, filter: &JobFilter) -> (Vec<JobGuid>, Option<JobGuid>) {
    let JobPage { jobs, next } = store.jobs(&Owner("me".into()), filter, at(50)).await.unwrap();
    (jobs.iter().map(|job| job.job_guid).collect(), next)
}

fn up_to(limit: usize) -> JobFilter {
    JobFilter { limit, ..JobFilter::default() }
}

pub async fn a_new_job_reads_back_with_its_spec(store: &impl JobStore) {
    let new = new_job(1, "me");
    assert_eq!(store.create(&new).await.unwrap(), Created::New);
    assert_eq!(store.job(guid(1)).await.unwrap(), new.job);
    assert_eq!(store.spec(guid(1)).await.unwrap(), new.spec);
}

pub async fn missing_rows_are_not_found(store: &impl JobStore) {
    assert!(matches!(store.job(guid(1)).await, Err(PortError::NotFound)));
    assert!(matches!(store.spec(guid(1)).await, Err(PortError::NotFound)));
    assert!(matches!(store.tally(guid(1), 1, 0).await, Err(PortError::NotFound)));
    assert_eq!(store.remembered(&Owner("me".into()), "k", at(0)).await.unwrap(), None);
    assert_eq!(store.totals(guid(1), 4).await.unwrap().attempt, 4);
}

pub async fn an_owner_sees_their_own_jobs_newest_first(store: &impl JobStore) {
    for (number, owner) in [(2, "me"), (1, "me"), (3, "you"), (4, "me")] {
        created(store, number, owner).await;
    }
    assert_eq!(listed(store, &up_to(10)).await, (vec![guid(4), guid(2), guid(1)], None));
    let page = store.jobs(&Owner("me".into()), &up_to(10), at(0)).await.unwrap();
    assert_eq!(page.jobs[0], new_job(4, "me").job, "the whole row is listed");
    assert_eq!(store.jobs(&Owner("she".into()), &up_to(10), at(0)).await.unwrap(), JobPage::default());
}

pub async fn pages_have_no_gap_and_no_repetition(store: &impl JobStore) {
    for number in 1..=7 {
        created(store, number, "me").await;
    }
    let mut filter = up_to(3);
    let mut all = Vec::new();
    for expected_next in [Some(guid(5)), Some(guid(2)), None] {
        let (page, next) = listed(store, &filter).await;
        assert_eq!(next, expected_next);
        all.extend(page);
        filter.after = next;
    }
    assert_eq!(all, (1..=7).rev().map(guid).collect::<Vec<_>>());
    assert_eq!(listed(store, &up_to(7)).await.1, None, "a page that holds the last job has none after it");
    assert_eq!(listed(store, &up_to(0)).await, (vec![], None));
}

pub async fn a_list_has_only_the_jobs_that_match_the_filter(store: &impl JobStore) {
    for number in 1..=6 {
        let mut new = new_job(number, "me");
        if number % 2 == 0 {
            new.job.job_type = "validate".into();
        }
        store.create(&new).await.unwrap();
    }
    let of_type = JobFilter { job_type: Some("validate".into()), ..up_to(10) };
    assert_eq!(listed(store, &of_type).await, (vec![guid(6), guid(4), guid(2)], None));
    change(store, guid(4), |job| job.stop(&stop(StopCode::Cancelled))).await;
    let cancelling = JobFilter { state: Some(StateFilter::Status(Status::Cancelling)), ..of_type.clone() };
    assert_eq!(listed(store, &cancelling).await, (vec![guid(4)], None));
    let waiting = JobFilter { state: Some(StateFilter::Status(Status::Waiting)), ..of_type };
    assert_eq!(listed(store, &waiting).await, (vec![guid(6), guid(2)], None));
}

pub async fn a_list_by_outcome_has_only_the_completed_jobs_with_it(store: &impl JobStore) {
    use JobOutcome::{Empty, Failed, Partial, Succeeded};
    for (number, outcome) in [(1, Partial), (2, Empty), (3, Succeeded), (4, Partial), (5, Failed)] {
        created(store, number, "me").await;
        let seen = leased(store, guid(number), 9).await;
        let mut completion = end(seen);
        completion.end.outcome = Ok(outcome);
        store.complete(&completion).await.unwrap();
    }
    created(store, 6, "me").await;
    let of = |outcome| JobFilter { state: Some(StateFilter::Outcome(outcome)), ..up_to(10) };
    assert_eq!(listed(store, &of(Partial)).await, (vec![guid(4), guid(1)], None));
    assert_eq!(listed(store, &of(Empty)).await, (vec![guid(2)], None));
    assert_eq!(listed(store, &JobFilter { limit: 1, ..of(Partial) }).await, (vec![guid(4)], Some(guid(4))));
    let completed = JobFilter { state: Some(StateFilter::Status(Status::Completed)), ..up_to(10) };
    assert_eq!(listed(store, &completed).await.0.len(), 5);
}

pub async fn a_page_is_full_regardless_of_how_many_jobs_the_filter_excludes(store: &impl JobStore) {
    for number in 1..=30 {
        let mut new = new_job(number, "me");
        if number % 10 == 0 {
            new.job.job_type = "validate".into();
        }
        store.create(&new).await.unwrap();
    }
    let filter = JobFilter { job_type: Some("validate".into()), ..up_to(2) };
    assert_eq!(listed(store, &filter).await, (vec![guid(30), guid(20)], Some(guid(20))));
    let rest = JobFilter { after: Some(guid(20)), ..filter };
    assert_eq!(listed(store, &rest).await, (vec![guid(10)], None));
}

pub async fn an_expired_job_is_not_listed_but_can_be_read(store: &impl JobStore) {
    for number in 1..=3 {
        created(store, number, "me").await;
        let seen = leased(store, guid(number), 9).await;
        let expires_at = if number == 2 { at(50) } else { at(51) };
        let mut completion = end_at(seen, 9);
        completion.end.expires_at = expires_at;
        store.complete(&completion).await.unwrap();
    }
    assert_eq!(listed(store, &up_to(10)).await, (vec![guid(3), guid(1)], None));
    assert_eq!(listed(store, &up_to(1)).await, (vec![guid(3)], Some(guid(3))));
    assert_eq!(store.job(guid(2)).await.unwrap().end().map(|end| end.expires_at), Some(at(50)));
}
