//! The cost of a request before its job is admitted.

use acceptance::files::workbook;
use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_core::model::keys;
use rowmill_core::ports::{Admission, Ceilings, Jobs};
use serde_json::json;

#[tokio::test]
async fn a_request_beyond_the_limit_of_active_jobs_is_refused_before_its_file_is_opened() {
    let ceilings = Ceilings { owner: 1, job_type: 9, system: 9 };
    let world = World::new(Limits::default().but(|limits| limits.create.ceilings = ceilings));
    world.validate_csv("a\n1\n").await;
    let file = world.store_csv("a\n1\n").await;
    world.objects.delete(&keys::upload(file));
    let refused = world.create("validate", file, json!({})).await.unwrap_err();
    let CreateJobError::Full(full) = refused else { panic!("the file was opened: {refused}") };
    assert_eq!(full.admission, Admission::OwnerFull);
}

#[tokio::test]
async fn a_repeated_request_finds_its_job_also_when_the_limit_is_reached() {
    let ceilings = Ceilings { owner: 1, job_type: 9, system: 9 };
    let world = World::new(Limits::default().but(|limits| limits.create.ceilings = ceilings));
    let file = world.store_csv("a\n1\n").await;
    let request = serde_json::from_value(json!({ "jobType": "validate", "fileGuid": file })).unwrap();
    let owner = World::owner();
    let create = || world.creator.create(&owner, &request, Some("key"));
    let job = create().await.unwrap();
    assert_eq!(create().await.unwrap().job_guid, job.job_guid);
    assert!(world.jobs.job(job.job_guid).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_of_empty_rows_is_given_up_within_its_budget() {
    let world = World::new(Limits::default());
    let xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    // About 1 MB of nothing but empty rows that unpacks to more than the budget.
    let rows = std::iter::repeat_n("<row/>".repeat(100_000), 340);
    let file = world.store(xlsx, workbook(rows)).await;
    let refused = world.create("validate", file, json!({})).await.unwrap_err();
    let CreateJobError::Packed(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code(), "begins_too_late", "{error}");
}
