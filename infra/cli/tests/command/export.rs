//! `rowmill export`.

use super::*;

/// A completed export: it has no file it works on.
fn exported() -> Value {
    let mut job = job("completed", Some("succeeded"), 1, 0);
    job["jobType"] = "export".into();
    job.as_object_mut().unwrap().remove("fileGuid");
    job
}

#[test]
fn an_export_is_a_job_without_a_file_whose_output_is_fetched() {
    let (url, sent) = recorded(exported());
    let (filter, out) = (file(r#"{"required":["a"]}"#), tempfile::tempdir().unwrap());
    let arguments = [
        "export",
        "orders",
        "--columns=a,b",
        "--filter",
        filter.1.to_str().unwrap(),
        "--format=jsonl",
        "--gzip",
        "--max-concurrency=3",
        "--priority=low",
        "--out",
        out.path().to_str().unwrap(),
        "--url",
        &url,
    ];
    let (shown, _) = said(0, &mut rowmill(&arguments));
    let (path, body) = request(&sent);
    assert_eq!(path, "POST /api/jobs", "nothing is uploaded first");
    let params = json!({ "dataset": "orders", "columns": ["a", "b"], "filter": { "required": ["a"] }, "format": "jsonl",
        "compress": "gzip" });
    assert_eq!(body, json!({ "jobType": "export", "params": params, "maxConcurrency": 3, "priority": "low" }));
    let entries: Vec<_> = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(entries, ["rows-output.csv"], "the output, and not the manifest");
    assert!(shown.contains("rows-output.csv"), "{shown}");
}

#[test]
fn an_export_sends_no_params_that_were_not_given() {
    let (url, sent) = recorded(exported());
    let out = tempfile::tempdir().unwrap();
    said(0, rowmill(&["export", "orders", "--url", &url]).current_dir(out.path()));
    assert_eq!(request(&sent).1, json!({ "jobType": "export", "params": { "dataset": "orders" } }));
    assert!(out.path().join("rows-output.csv").exists());
}

#[test]
fn a_failed_export_fetches_nothing() {
    let (url, out) = (api(job("failed", None, 0, 0)), tempfile::tempdir().unwrap());
    let (shown, _) = said(1, rowmill(&["export", "orders", "--url", &url]).current_dir(out.path()));
    assert!(shown.starts_with("Job failed"), "{shown}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn an_invalid_filter_is_rejected_before_anything_is_sent() {
    let (url, sent) = recorded(exported());
    let filter = file("no JSON");
    let (_, error) =
        said(1, &mut rowmill(&["export", "orders", "--filter", filter.1.to_str().unwrap(), "--url", &url]));
    assert!(error.contains("rows.csv"), "{error}");
    assert!(sent.try_recv().is_err());
}
