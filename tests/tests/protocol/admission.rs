//! What a request costs before its job is admitted.

use std::io::Write;

use acceptance::use_cases::Limits;
use acceptance::world::World;
use create_job::create::CreateJobError;
use rowmill_core::model::keys;
use rowmill_core::ports::{Admission, Ceilings, Jobs};
use serde_json::json;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

#[tokio::test]
async fn a_request_beyond_the_limit_of_active_jobs_is_refused_before_its_file_is_opened() {
    let world = World::new(Limits { ceilings: Ceilings { owner: 1, job_type: 9, system: 9 }, ..Limits::default() });
    world.validate_csv("a\n1\n").await;
    let file = world.store_csv("a\n1\n").await;
    world.objects.delete(&keys::upload(file));
    let refused = world.create("validate", file, json!({})).await.unwrap_err();
    let CreateJobError::Full(full) = refused else { panic!("the file was opened: {refused}") };
    assert_eq!(full.admission, Admission::OwnerFull);
}

#[tokio::test]
async fn a_repeated_request_finds_its_job_also_when_the_limit_is_reached() {
    let world = World::new(Limits { ceilings: Ceilings { owner: 1, job_type: 9, system: 9 }, ..Limits::default() });
    let file = world.store_csv("a\n1\n").await;
    let request = serde_json::from_value(json!({ "jobType": "validate", "fileGuid": file })).unwrap();
    let owner = World::owner();
    let create = || world.creator.create(&owner, &request, Some("key"));
    let job = create().await.unwrap();
    assert_eq!(create().await.unwrap().job_guid, job.job_guid);
    assert!(world.jobs.job(job.job_guid).await.is_ok());
}

/// A workbook of nothing but empty rows: about 1 MB that unpacks to more than the budget.
fn empty_rows() -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let mut part = |name: &str, content: &[u8], times: usize| {
        archive.start_file(name, SimpleFileOptions::default()).unwrap();
        (0..times).for_each(|_| archive.write_all(content).unwrap());
    };
    let types = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>"#;
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let root = format!(
        r#"<Relationships><Relationship Id="r1" Type="{relation}/officeDocument" Target="xl/workbook.xml"/></Relationships>"#
    );
    let workbook = format!(
        r#"<workbook xmlns:r="{relation}"><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let relations = format!(
        r#"<Relationships><Relationship Id="r1" Type="{relation}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#
    );
    part("[Content_Types].xml", types.as_bytes(), 1);
    part("_rels/.rels", root.as_bytes(), 1);
    part("xl/workbook.xml", workbook.as_bytes(), 1);
    part("xl/_rels/workbook.xml.rels", relations.as_bytes(), 1);
    archive.start_file("xl/worksheets/sheet1.xml", SimpleFileOptions::default()).unwrap();
    archive.write_all(b"<worksheet><sheetData>").unwrap();
    let rows = "<row/>".repeat(100_000);
    (0..340).for_each(|_| archive.write_all(rows.as_bytes()).unwrap());
    archive.write_all(b"</sheetData></worksheet>").unwrap();
    archive.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workbook_of_empty_rows_is_given_up_within_its_budget() {
    let world = World::new(Limits::default());
    let xlsx = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    let file = world.store(xlsx, empty_rows()).await;
    let refused = world.create("validate", file, json!({})).await.unwrap_err();
    let CreateJobError::Packed(error) = refused else { panic!("{refused:?}") };
    assert_eq!(error.code(), "begins_too_late", "{error}");
}
