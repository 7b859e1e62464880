//! `rowmill results`, and what `rowmill run` does with results.

use std::path::Path;

use super::*;
use crate::api::SLOW;

fn results(code: i32, url: &str, out: &Path, more: &[&str]) -> (String, String) {
    said(code, &mut rowmill(&[&["results", GUID, "--url", url, "--out", out.to_str().unwrap()], more].concat()))
}

fn json_lines(shown: &str) -> Vec<Value> {
    shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn partial() -> Value {
    job("completed", Some("partial"), 1, 1)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_result_is_saved_in_the_folder_and_listed_on_standard_output() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("new/folder");
    let (shown, error) = results(0, &api(partial()), &out, &[]);
    let names = ["rows-failed-rows.csv", "rows-manifest.json", "rows-output.csv"];
    assert_eq!(names_in(&out), names, "a name that leads elsewhere does not");
    assert_eq!(std::fs::read_to_string(out.join("rows-output.csv")).unwrap(), "a,b\n1,2\n");
    let mut listed: Vec<_> = shown.lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, names.map(|name| out.join(name).to_str().unwrap().to_owned()));
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn without_a_folder_results_are_saved_in_the_current_one() {
    let (folder, url) = (tempfile::tempdir().unwrap(), api(partial()));
    let arguments = ["results", GUID, "--url", &url, "--only", "failed-rows"];
    let (shown, error) = said(0, rowmill(&arguments).current_dir(folder.path()));
    assert_eq!(shown, "./rows-failed-rows.csv\n", "{error}");
    assert_eq!(names_in(folder.path()), ["rows-failed-rows.csv"]);
}

#[test]
fn results_can_be_selected_by_kind_even_if_there_are_none() {
    let (out, url) = (tempfile::tempdir().unwrap(), api(partial()));
    results(0, &url, out.path(), &["--only", "output", "--only", "manifest"]);
    assert_eq!(names_in(out.path()), ["rows-manifest.json", "rows-output.csv"]);
    let (shown, error) = results(0, &url, out.path(), &["--only", "unprocessed-rows"]);
    assert!(shown.is_empty() && error.contains("no such results"), "{shown}{error}");
}

#[test]
fn an_existing_result_is_replaced_only_with_force() {
    let (out, url) = (tempfile::tempdir().unwrap(), api(partial()));
    let mine = out.path().join("rows-output.csv");
    std::fs::write(&mine, "mine").unwrap();
    let (_, error) = results(1, &url, out.path(), &[]);
    assert!(error.contains("rows-output.csv` exists already"), "{error}");
    assert_eq!(names_in(out.path()), ["rows-output.csv"], "nothing is fetched half");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    results(0, &url, out.path(), &["--force"]);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "a,b\n1,2\n");
}

#[test]
fn with_json_the_last_line_lists_the_saved_files() {
    let out = tempfile::tempdir().unwrap();
    let (shown, _) = results(0, &api(partial()), out.path(), &["--json"]);
    let lines = json_lines(&shown);
    assert!(lines[..lines.len() - 1].iter().all(|line| line["event"] == "download"), "{lines:?}");
    let last = lines.last().unwrap();
    assert_eq!((&last["jobGuid"], &last["attempt"]), (&json!(GUID), &json!(1)));
    let files = last["files"].as_array().unwrap();
    let seen: Vec<_> = files.iter().map(|file| (file["kind"].as_str().unwrap(), file["bytes"].as_u64())).collect();
    assert_eq!(seen, [("failedRows", Some(50)), ("output", Some(8)), ("manifest", Some(2))]);
    assert_eq!(files[1]["path"], out.path().join("rows-output.csv").to_str().unwrap());
    assert!(!shown.contains("secret"));
}

#[test]
fn the_error_for_a_job_without_results_says_what_to_do() {
    let out = tempfile::tempdir().unwrap();
    let (_, running) = results(1, &api(job("running", None, 1, 0)), out.path(), &[]);
    let hint = format!("rowmill job {GUID} --watch");
    assert!(running.contains("job_active") && running.contains(&hint), "{running}");
    let (_, none) = results(1, &api(job("failed", None, 1, 0)), out.path(), &[]);
    assert!(none.contains("no_results"), "{none}");
    results(2, &api(partial()), out.path(), &["--only", "everything"]);
}

#[test]
fn an_interrupted_fetch_leaves_no_partial_file() {
    let mut slow = job("completed", Some("succeeded"), 1, 0);
    slow["jobType"] = SLOW.into();
    let (out, url) = (tempfile::tempdir().unwrap(), api(slow));
    let arguments = ["results", GUID, "--url", &url, "--json", "--out", out.path().to_str().unwrap()];
    let mut child = rowmill(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("download")).expect("it has begun").unwrap();
    let temporary = names_in(out.path());
    assert!(temporary.len() == 1 && temporary[0] != "rows-slow.csv", "{temporary:?}");
    interrupt(&child);
    assert_eq!(ended(&mut child), Some(130));
    assert_eq!(names_in(out.path()), [""; 0]);
}

#[test]
fn a_run_with_failed_rows_ends_with_how_to_get_them() {
    let url = api(partial());
    let shown = text(&run(&url, "a\n1\n2\n", &[]).stdout);
    let hint =
        format!("\n\nGet the failed rows as a file: rowmill results {GUID} --url {url}\nSee the job in a browser: ");
    assert!(shown.contains(&hint), "{shown}");
    let url = api(job("completed", Some("succeeded"), 2, 0));
    let shown = text(&run(&url, "a\n1\n2\n", &[]).stdout);
    assert!(!shown.contains("rowmill results"), "{shown}");
}

#[test]
fn a_run_with_failed_rows_fetches_its_results() {
    let (out, url) = (tempfile::tempdir().unwrap(), api(partial()));
    let results = ["--results", out.path().to_str().unwrap()];
    let output = run(&url, "a\n1\n2\n", &results);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert_eq!(names_in(out.path()), ["rows-failed-rows.csv", "rows-manifest.json", "rows-output.csv"]);
    let shown = text(&output.stdout);
    assert!(shown.contains("Job complete") && shown.contains("50 B"), "{shown}");
    assert!(!shown.contains("rowmill results"), "they are here: {shown}");
}

#[test]
fn a_run_that_cannot_fetch_its_results_still_shows_the_job() {
    let (out, url) = (tempfile::tempdir().unwrap(), api(partial()));
    std::fs::write(out.path().join("rows-output.csv"), "mine").unwrap();
    let output = run(&url, "a\n1\n2\n", &["--results", out.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(shown.contains("Job complete") && shown.contains(&format!("rowmill results {GUID}")), "{shown}");
    assert!(text(&output.stderr).contains("exists already"), "{}", text(&output.stderr));
}

#[test]
fn the_job_is_the_last_line_of_a_run_that_fetches_results() {
    let (out, url) = (tempfile::tempdir().unwrap(), api(partial()));
    let output = run(&url, "a\n1\n2\n", &["--json", "--results", out.path().to_str().unwrap()]);
    let lines = json_lines(&text(&output.stdout));
    let [.., before, last] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&before["event"], before["files"].as_array().unwrap().len()), (&json!("results"), 3));
    assert_eq!(last["status"], "completed");
}
