use serde_json::json;

use super::*;
use crate::api::RetryPolicy;
use crate::fake_api::{FakeApi, Reply};
use crate::fixtures::{job_guid, job_json};

/// The job as `follow` gets it.
pub fn shown(status: &str, percent: u8) -> Job {
    serde_json::from_value(job_of(status, percent)).unwrap()
}

pub fn job_of(status: &str, percent: u8) -> serde_json::Value {
    job_json(json!({"status": status, "percent": percent}))
}

#[derive(Default)]
pub struct Seen(pub Vec<String>);

impl Observer for Seen {
    fn looked(&mut self, job: &JobView) {
        self.0.push(message(job));
    }

    fn quiet(&mut self, _: &JobView, _: Duration) {
        self.0.push("quiet".into());
    }
}

pub fn client(url: &str) -> ApiClient {
    ApiClient::new(url, None).unwrap().with_patience(RetryPolicy::once(), Duration::from_secs(5))
}

pub fn short() -> Patience {
    Patience { unanswered: Duration::from_millis(600), unchanged: Duration::from_millis(600), listens: true }
}

#[tokio::test]
async fn every_poll_is_reported() {
    let api = FakeApi::serve(|_, n| match n {
        0 => Reply::json(200, job_of("running", 37)),
        1 => Reply::text(503, "").header("retry-after", "0"),
        _ => Reply::json(200, job_of("completed", 100)),
    })
    .await;
    let mut seen = Seen::default();
    let last = follow(&client(&api.url), shown("waiting", 0), &short(), &mut seen).await.unwrap();
    assert_eq!(last.status, Status::Completed);
    assert_eq!(seen.0, ["Waiting for job to start...", "Job running, 37% complete...", "Job complete"]);
}

#[tokio::test]
async fn a_cancelled_job_is_followed_until_it_has_ended() {
    let api = FakeApi::serve(|_, n| match n {
        0 => Reply::json(200, job_of("cancelling", 40)),
        _ => Reply::json(200, job_of("cancelled", 40)),
    })
    .await;
    let mut seen = Seen::default();
    let last = follow(&client(&api.url), shown("running", 40), &short(), &mut seen).await.unwrap();
    assert_eq!(Verdict::of(&last), Verdict::JobFailed);
    assert_eq!(seen.0, ["Job running, 40% complete...", "Job cancelling, 40% complete...", "Job cancelled"]);
}

#[tokio::test]
async fn an_ended_job_is_not_polled() {
    let api = FakeApi::serve(|_, _| Reply::hang_up()).await;
    follow(&client(&api.url), shown("failed", 3), &short(), &mut Seen::default()).await.unwrap();
    assert!(api.seen().is_empty());
}

#[tokio::test]
async fn an_api_that_falls_silent_is_an_error_that_names_the_job() {
    let api = FakeApi::serve(|_, _| Reply::hang_up()).await;
    let first = shown("running", 5);
    let error = follow(&client(&api.url), first, &short(), &mut Seen::default()).await.unwrap_err();
    assert!(matches!(error, FollowError::Unanswered { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("no answer about job {} for ", job_guid())), "{error}");
}

#[tokio::test]
async fn a_job_that_never_moves_is_an_error_that_names_it() {
    let api = FakeApi::serve(|_, _| Reply::json(200, job_of("running", 5))).await;
    let first = shown("running", 5);
    let error = follow(&client(&api.url), first, &short(), &mut Seen::default()).await.unwrap_err();
    assert!(matches!(error, FollowError::Unchanged { .. }), "{error}");
    assert!(error.to_string().starts_with(&format!("job {} is running and has not moved", job_guid())), "{error}");
}

#[tokio::test]
async fn following_a_missing_job_ends_at_once() {
    let api = FakeApi::serve(|_, _| Reply::json(404, json!({"code": "unknown_job"}))).await;
    let first = shown("running", 5);
    let error = follow(&client(&api.url), first, &short(), &mut Seen::default()).await.unwrap_err();
    assert!(matches!(error, FollowError::Refused { .. }), "{error}");
    assert_eq!(api.seen().len(), 1);
}

#[test]
fn polls_become_less_frequent_up_to_retry_after() {
    let mut pace = Pace::default();
    let waits: Vec<u128> = (0..8).map(|_| pace.next(None).as_millis()).collect();
    assert_eq!(waits, [100, 150, 225, 337, 506, 759, 1000, 1000]);
    assert_eq!(pace.next(Some(Duration::from_secs(30))), LONGEST_WAIT);
    assert_eq!(pace.next(Some(Duration::ZERO)), FIRST_WAIT);
}
