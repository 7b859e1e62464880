//! The `rowmill` command itself, run as a process against an API that answers from a script: exit codes, what goes to
//! which stream, interruption.

mod api;
mod export;
mod results;
mod work;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use api::{GUID, KNOWN, REFUSED, REPORT, api, job, recorded};
use serde_json::{Value, json};

struct File(#[expect(dead_code, reason = "removed with the value")] tempfile::TempDir, PathBuf);

fn file(content: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, content).unwrap();
    File(folder, path)
}

fn rowmill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowmill"));
    command.args(arguments).env_remove("ROWMILL_URL").env_remove("ROWMILL_TOKEN").stdin(Stdio::null());
    command
}

fn run(url: &str, content: &str, more: &[&str]) -> Output {
    let file = file(content);
    let path = file.1.to_str().unwrap();
    rowmill(&[&["run", path, "--type", "validate", "--url", url], more].concat()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Standard output and error of a command. It ends with this exit code.
fn said(code: i32, command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    let (shown, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{error}");
    (shown, error)
}

/// The next request that was sent to the API, and its body.
fn request(sent: &Receiver<(String, Vec<u8>)>) -> (String, Value) {
    let (request, body) = sent.recv().unwrap();
    (request, serde_json::from_slice(&body).unwrap())
}

#[test]
fn the_exit_code_follows_from_the_outcome() {
    let code = |job: Value| run(&api(job), "a\n1\n", &[]).status.code();
    assert_eq!(code(job("completed", Some("succeeded"), 2, 0)), Some(0));
    assert_eq!(code(job("completed", Some("partial"), 1, 1)), Some(3));
    assert_eq!(code(job("failed", None, 1, 0)), Some(1));
    assert_eq!(rowmill(&["run"]).output().unwrap().status.code(), Some(2), "no file, no type");
    assert_eq!(run("http://127.0.0.1:9", "a\n", &["--key"]).status.code(), Some(2));
}

#[test]
fn an_empty_file_is_run_like_any_other() {
    let output = run(&api(job("completed", Some("succeeded"), 0, 0)), "", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Requests to the API of a run of this type with these arguments, and the command's output.
fn sent_by_run(job_type: &str, more: &[&str]) -> (Vec<String>, Output) {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
    let file = file("a\n1\n");
    let arguments = [&["run", file.1.to_str().unwrap(), "--type", job_type, "--url", &url], more].concat();
    let output = rowmill(&arguments).output().unwrap();
    (sent.try_iter().map(|(request, _)| request).collect(), output)
}

#[test]
fn a_job_that_would_be_refused_is_refused_before_its_file_is_uploaded() {
    for more in [&[][..], &["--estimate"]] {
        let (requests, output) = sent_by_run(REFUSED, more);
        assert_eq!((requests, output.status.code()), (vec!["POST /api/jobs/estimate".to_owned()], Some(1)));
        assert!(text(&output.stderr).contains("check job: `params.dataset` is missing"), "{}", text(&output.stderr));
    }
    let (requests, output) = sent_by_run(REPORT, &[]);
    assert_eq!((requests, output.status.code()), (vec!["POST /api/jobs/estimate".to_owned()], Some(2)));
    assert!(text(&output.stderr).contains("a job of the type `report` reads no file"), "{}", text(&output.stderr));
}

#[test]
fn a_job_is_checked_without_its_file_then_the_file_is_uploaded() {
    let (requests, output) = sent_by_run("validate", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(requests[..3], ["POST /api/jobs/estimate", "POST /api/uploads?fileName=rows.csv", "POST /api/jobs"]);
    let (requests, output) = sent_by_run("validate", &["--estimate"]);
    let estimate = "POST /api/jobs/estimate";
    assert_eq!(requests, [estimate, "POST /api/uploads?fileName=rows.csv", estimate]);
    assert!(text(&output.stdout).contains("\nEstimate; no job was created\n"), "{}", text(&output.stdout));
}

#[test]
fn a_job_without_items_is_nothing_to_do_and_no_failure() {
    let url = api(job("completed", Some("empty"), 0, 0));
    let output = run(&url, "", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for arguments in [&["job", GUID, "--url", &url][..], &["jobs", "--limit", "1", "--url", &url]] {
        let shown = text(&rowmill(arguments).output().unwrap().stdout);
        assert!(shown.contains("nothing to do"), "{shown}");
    }
    assert!(text(&output.stdout).contains("nothing to do"), "{}", text(&output.stdout));
}

#[test]
fn a_run_and_a_job_end_with_the_address_of_the_job_on_the_page() {
    let url = api(job("completed", Some("partial"), 1, 1));
    let shown = rowmill(&["job", GUID, "--url", &format!("{url}/")]).output().unwrap();
    for output in [run(&url, "a\n1\n", &[]), shown] {
        let shown = text(&output.stdout);
        assert!(shown.ends_with(&format!("\nSee the job in a browser: {url}/#/jobs/{GUID}\n")), "{shown}");
    }
}

#[test]
fn a_job_shows_its_params_and_the_name_of_its_file() {
    let mut view = job("completed", Some("succeeded"), 2, 0);
    view["params"] = json!({ "dataset": "people" });
    let shown = text(&rowmill(&["job", GUID, "--url", &api(view)]).output().unwrap().stdout);
    assert!(shown.contains("  params     dataset=\"people\"\n"), "{shown}");
    assert!(shown.contains("  file       rows.csv\n"), "{shown}");
}

#[test]
fn rows_are_sent_with_the_request() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
    let items = file("{\"a\": 1}\n{\"a\": 2}\n");
    let arguments = ["run", "--items", items.1.to_str().unwrap(), "--type", "validate", "--url", &url];
    said(0, &mut rowmill(&arguments));
    let body = json!({ "jobType": "validate", "items": [{ "a": 1 }, { "a": 2 }] });
    assert_eq!(request(&sent), ("POST /api/jobs".to_owned(), body));
    // A file, or items; and without a file there is none to find a job by.
    said(2, &mut rowmill(&["run", "rows.csv", "--items", "rows.json", "--type", "validate", "--url", &url]));
    said(2, &mut rowmill(&[&arguments[..], &["--dedupe"]].concat()));
}

#[test]
fn a_job_type_without_input_is_run_without_a_file() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 1, 0));
    said(0, &mut rowmill(&["run", "--type", REPORT, "--url", &url]));
    assert_eq!(request(&sent).1, json!({ "jobType": REPORT }));
    // There is nothing to find a job by.
    said(2, &mut rowmill(&["run", "--dedupe", "--type", "report", "--url", &url]));
}

#[test]
fn a_job_that_is_found_by_its_file_is_said_to_be_an_older_one() {
    let run = |job_type: &str| {
        let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
        let (_, error) = said(0, &mut rowmill(&["run", GUID, "--type", job_type, "--dedupe", "--url", &url]));
        assert_eq!(request(&sent).1["dedupe"], "file");
        error
    };
    assert!(!run("validate").contains("No new job was created"));
    assert!(run(KNOWN).contains(&format!("The job {GUID} does the same with this file. No new job was created.")));
}

#[test]
fn failed_rows_are_shown_with_control_characters_escaped() {
    let output = run(&api(job("completed", Some("partial"), 1, 1)), "a\n1\n2\n", &[]);
    let shown = text(&output.stdout);
    assert!(shown.contains("Job complete") && shown.contains("ragged_row"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn with_json_the_last_line_is_the_job() {
    let output = run(&api(job("completed", Some("succeeded"), 2, 0)), "a\n1\n2\n", &["--json"]);
    let shown = text(&output.stdout);
    let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["jobGuid"], GUID);
    assert!(lines.len() > 1, "{shown}");
}

#[test]
fn an_upload_writes_only_its_guid_to_standard_output() {
    let (file, url) = (file("a\n1\n"), api(Value::Null));
    let output = rowmill(&["upload", file.1.to_str().unwrap(), "--url", &url]).output().unwrap();
    assert_eq!(text(&output.stdout), format!("{GUID}\n"), "{}", text(&output.stderr));
}

#[test]
fn a_job_is_cancelled_paused_and_resumed_and_shown() {
    for (command, status, expected) in [
        ("cancel", "cancelling", "Job cancelling"),
        ("pause", "paused", "Job paused"),
        ("resume", "running", "Job running"),
    ] {
        let (url, sent) = recorded(job(status, None, 5, 0));
        let (shown, error) = said(0, &mut rowmill(&[command, GUID, "--url", &url]));
        assert!(shown.starts_with(expected), "{shown}");
        assert_eq!(error.contains(&format!("job {GUID} --watch")), command != "pause", "{error}");
        assert_eq!(sent.recv().unwrap().0, format!("POST /api/jobs/{GUID}/{command}"));
    }
}

#[test]
fn a_job_gets_the_limits_that_are_given() {
    let (url, sent) = recorded(job("running", None, 5, 0));
    let limits = ["--tolerance-percent", "2.5", "--deadline", "8h", "--priority", "low", "--max-concurrency", "7"];
    let (shown, error) = said(0, rowmill(&["retune", GUID, "--url", &url]).args(limits));
    assert!(shown.starts_with("Job running") && error.contains("The job's deadline is "), "{shown}{error}");
    let tolerance = json!({ "percent": 2.5 });
    let body = json!({ "tolerance": tolerance, "maxConcurrency": 7, "priority": "low", "deadlineSeconds": 28_800 });
    assert_eq!(request(&sent), (format!("PATCH /api/jobs/{GUID}"), body));
}

#[test]
fn a_redrive_uploads_the_corrected_file_first_and_watches_on_request() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 5, 0));
    let corrected = file("row,a\n2,1\n");
    let path = corrected.1.to_str().unwrap();
    let arguments =
        ["redrive", GUID, "--corrected", path, "--deadline-seconds", "90", "--watch", "--json", "--url", &url];
    let (shown, _) = said(0, &mut rowmill(&arguments));
    assert!(shown.lines().last().unwrap().contains("\"attempt\":1"));
    assert_eq!(sent.recv().unwrap().0, "POST /api/uploads?fileName=rows.csv");
    let body = json!({ "fileGuid": GUID, "deadlineSeconds": 90 });
    assert_eq!(request(&sent), (format!("POST /api/jobs/{GUID}/redrive"), body));
}

#[test]
fn a_redrive_with_a_missing_corrected_file_sends_nothing() {
    let (url, sent) = recorded(Value::Null);
    let (_, error) = said(1, &mut rowmill(&["redrive", GUID, "--corrected", "/no/such.csv", "--url", &url]));
    assert!(error.contains("/no/such.csv"));
    assert!(sent.try_recv().is_err());
}

#[test]
fn dead_letters_are_listed_for_people_and_for_programs() {
    let url = api(Value::Null);
    let shown = rowmill(&["dead-letters", GUID, "--url", &url]).output().unwrap();
    assert!(text(&shown.stdout).contains("500 from 1,501"), "{}", text(&shown.stdout));
    let lines = rowmill(&["dead-letters", GUID, "--json", "--url", &url]).output().unwrap();
    let letter: Value = serde_json::from_str(text(&lines.stdout).trim_end()).unwrap();
    assert_eq!(letter["chunk"]["firstRow"], 1501);
}

#[test]
fn an_audit_is_read_to_its_end_and_its_exit_code_tells_the_verdict() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
    let (proved, _) = said(0, &mut rowmill(&["audit", GUID, "--url", &url]));
    assert!(proved.starts_with("Audit of attempt 1: proved\n"), "{proved}");
    let asked: Vec<String> = sent.try_iter().map(|(request, _)| request).collect();
    assert_eq!(asked, ["", "?after=c"].map(|query| format!("GET /api/jobs/{GUID}/audit{query}")));
    let json = rowmill(&["audit", GUID, "--json", "--url", &url]).output().unwrap();
    let proof: Value = serde_json::from_str(text(&json.stdout).trim_end()).unwrap();
    assert_eq!((&proof["verdict"], &proof["chunksCommitted"]), (&json!("proved"), &json!(23)));

    let (refuted, _) = said(1, &mut rowmill(&["audit", GUID, "--url", &api(job("failed", None, 1, 0))]));
    assert!(refuted.contains("tally_differs: Tally 3 differs."), "{refuted}");
    let (_, altered) = said(1, &mut rowmill(&["audit", GUID, "--url", &api(job("cancelled", None, 1, 0))]));
    assert!(altered.contains("altered on the way"), "{altered}");
}

#[test]
fn the_mapping_and_the_packing_of_the_file_reach_the_api() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
    let arguments = [
        r#"--mapping=[{"drop":"a"}]"#,
        "--output-format=jsonl",
        "--compression=none",
        "--encoding=utf-16le",
        "--sheet=Q1",
    ];
    assert_eq!(run(&url, "a\n1\n", &arguments).status.code(), Some(0));
    let (_, body) = sent.iter().find(|(request, _)| request == "POST /api/jobs").unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let params = json!({ "mapping": [{ "drop": "a" }], "outputFormat": "jsonl", "compression": "none",
        "encoding": "utf-16le", "sheet": "Q1" });
    assert_eq!(body["params"], params);
}

#[test]
fn limits_of_a_run_reach_the_api() {
    let (url, sent) = recorded(job("completed", Some("succeeded"), 2, 0));
    let bounds =
        ["--deadline=2m", "--tolerance-percent=5", "--tolerance-count=9", "--max-concurrency=3", "--priority=high"];
    assert_eq!(run(&url, "a\n1\n", &bounds).status.code(), Some(0));
    let (_, body) = sent.iter().find(|(request, _)| request == "POST /api/jobs").unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["deadlineSeconds"], &body["maxConcurrency"]), (&json!(120), &json!(3)));
    assert_eq!(body["tolerance"], json!({ "percent": 5.0, "count": 9 }));
    assert_eq!(body["priority"], "high");
}

#[test]
fn a_closed_standard_output_ends_the_command_silently() {
    let url = api(job("completed", Some("succeeded"), 2, 0));
    for more in [&[][..], &["--json"]] {
        let arguments = [&["jobs", "--limit", "5000", "--url", &url], more].concat();
        let mut child = rowmill(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(ended(&mut child), Some(0), "{more:?}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{more:?}");
    }
}

#[test]
fn the_error_for_a_missing_file_names_it() {
    let url = "http://127.0.0.1:9";
    let (_, error) = said(1, &mut rowmill(&["run", "/no/such.csv", "--type", "validate", "--url", url]));
    assert!(error.contains("/no/such.csv"));
}

#[test]
fn an_interrupted_run_says_how_to_show_the_job() {
    let (file, url) = (file("a\n1\n"), api(job("running", None, 1, 0)));
    let mut command = rowmill(&["run", file.1.to_str().unwrap(), "--type", "validate", "--url", &url]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("37%")).expect("it follows the job").unwrap();
    interrupt(&child);
    assert_eq!(ended(&mut child), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains(&format!("job {GUID}")), "{said}");
}

fn interrupt(child: &Child) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
}

fn ended(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    panic!("it does not end");
}

#[test]
fn parameters_that_the_functions_would_refuse_are_refused_before_anything_is_built() {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let refused = [
        (
            r#"JobTypes={"render": {"concurency": 1}}"#,
            "the parameter JobTypes: `render` has an unknown field `concurency`; it may have `activeJobs`",
        ),
        (
            r#"OwnerPriorities={"ann": "urgent"}"#,
            "the parameter OwnerPriorities: `ann` has \"urgent\"; its highest priority must be one of `high`, `normal`, `low`",
        ),
        (
            r#"RouteLimits={"audit": {"minute": 1, "hour": 1}}"#,
            "the parameter RouteLimits: `audit` is not a limited route; these are: `createUpload`",
        ),
    ];
    for command in [&["deploy", "--stack-name", "rowmill"][..], &["up"]] {
        for (parameter, expected) in refused {
            let arguments = [command, &["--parameter", parameter]].concat();
            let output = rowmill(&arguments).current_dir(&workspace).output().unwrap();
            let shown = text(&output.stderr);
            assert!(!output.status.success(), "{shown}");
            assert!(shown.contains(expected) && !shown.contains("Building"), "{shown}");
        }
    }
}
