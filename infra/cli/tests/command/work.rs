//! `rowmill work` with commands that do well, crash, hang, lie, and ignore what they are told.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rowmill_api::problem::ProblemCode;

use super::*;
use crate::api::{receive, reply, serve};

/// Prints an outcome for each item, in their order.
const WELL: &str = r#"sed -u 's/.*"itemIdentifier":"\([^"]*\)".*/{"itemIdentifier":"\1"}/'"#;

/// Prints the outcome of the first item.
const FIRST: &str = r#"read -r line; echo '{"itemIdentifier":"j/1"}';"#;

/// An API with tasks, and the requests about them: the action, and the body.
#[derive(Clone)]
struct Tasks {
    url: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Tasks {
    /// So many tasks of so many items. `answer` gets each beat and how many came before it.
    fn new(tasks: usize, items: usize, answer: impl Fn(&Value, usize) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let waiting: VecDeque<Value> = (1..=tasks).map(|number| task(number, items)).collect();
        let (waiting, answer) = (Arc::new(Mutex::new(waiting)), Arc::new(answer));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let here = Arc::new(Mutex::new(String::new()));
        let own_url = Arc::clone(&here);
        let url = serve(move |connection| {
            let ((request, body), _) = receive(connection);
            // A file is no JSON.
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let action = request.rsplit('/').next().unwrap().to_owned();
            let beats = {
                let mut log = log.lock().unwrap();
                let before = log.iter().filter(|(seen, _)| *seen == action).count();
                log.push((action.clone(), body.clone()));
                before
            };
            let (status, body) = match action.as_str() {
                "lease" => waiting.lock().unwrap().pop_front().map_or((204, Value::Null), |task| (200, task)),
                "beat" => answer(&body, beats),
                "products" => (200, store(&here.lock().unwrap(), body["name"].as_str().unwrap())),
                _ => (200, json!({ "order": "finished" })),
            };
            reply(connection, status, &body);
        });
        own_url.lock().unwrap().clone_from(&url);
        Self { url, seen }
    }

    /// One task of three items, on an API that does as it should.
    fn one() -> Self {
        Self::new(1, 3, |beat, _| order(if ends_with(beat, "j/3") { "finished" } else { "continue" }))
    }

    /// The requests with this action so far.
    fn sent(&self, action: &str) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(sent, _)| sent == action).map(|(_, body)| body.clone()).collect()
    }

    /// The items that were reported, in the order of the reports.
    fn reported(&self) -> Vec<Value> {
        self.sent("beat")
            .iter()
            .flat_map(|beat| beat["itemIdentifiers"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    /// The only release: whether the worker failed.
    fn release(&self) -> Value {
        let releases = self.sent("release");
        assert_eq!(releases.len(), 1, "{releases:?}");
        releases[0]["failed"].clone()
    }

    fn worker(&self, more: &[&str], script: &str) -> Command {
        let arguments = [&["work", "--type", "render", "--url", &self.url], more, &["--", "sh", "-c", script]].concat();
        let mut command = rowmill(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the worker until there is no task; what it says. It ends with this exit code.
    fn worked(&self, code: i32, script: &str) -> String {
        said(code, &mut self.worker(&["--until-empty"], script)).1
    }
}

fn task(number: usize, items: usize) -> Value {
    let items =
        (1..=items).map(|row| json!({ "itemIdentifier": format!("j/{row}"), "row": row, "record": { "n": 1.50 } }));
    json!({
        "taskId": format!("{GUID}.1.0.{number}"), "token": "t", "jobGuid": GUID, "jobType": "render",
        "params": { "size": 7 }, "items": items.collect::<Vec<_>>(),
        "firstBeatSeconds": 30, "beatSeconds": 1, "stopAfterSeconds": 2,
    })
}

/// The request that stores a product, at the same server.
fn store(url: &str, name: &str) -> Value {
    let headers = json!({ "content-type": "image/png" });
    json!({ "method": "PUT", "url": format!("{url}/{name}"), "headers": headers, "expiresAt": "2030-01-01T00:00:00Z" })
}

fn order(order: &str) -> (u16, Value) {
    (200, json!({ "order": order, "beatSeconds": 1 }))
}

fn ends_with(beat: &Value, item: &str) -> bool {
    beat["itemIdentifiers"].as_array().is_some_and(|items| items.last() == Some(&json!(item)))
}

fn names(count: usize) -> Vec<Value> {
    (1..=count).map(|row| json!(format!("j/{row}"))).collect()
}

fn until(missing: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{missing}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits for the id that a command has written into a file, and then for the end of the process.
fn no_process_of(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    until("the command still runs", || {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie waits for somebody to ask for its exit code.
        status.is_empty() || status.contains(") Z ")
    });
}

#[test]
fn a_command_gets_the_items_after_the_first_beat_and_its_lines_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    let tasks = Tasks::one();
    let script = format!("test -z \"$ROWMILL_TOKEN\" && tee {} | {WELL}", input.display());
    let (_, said) = said(0, tasks.worker(&["--until-empty"], &script).env("ROWMILL_TOKEN", "secret"));
    assert!(said.contains("3 of 3 items done\n") && said.contains("3 items done, 0 of them failed"), "{said}");
    let lease = &tasks.sent("lease")[0];
    assert_eq!(lease["jobTypes"], json!(["render"]));
    assert!(lease["worker"].as_str().is_some_and(|name| !name.is_empty()));
    let beats = tasks.sent("beat");
    assert_eq!(beats[0], json!({ "token": "t" }), "before the command began");
    assert_eq!((tasks.reported(), tasks.sent("release").len()), (names(3), 0));
    let input = std::fs::read_to_string(input).unwrap();
    let expected = format!(
        r#"{{"itemIdentifier":"j/1","row":1,"record":{{"n":1.5}},"jobGuid":"{GUID}","jobType":"render","params":{{"size":7}}}}"#
    );
    assert_eq!((input.lines().next(), input.lines().count()), (Some(expected.as_str()), 3));
}

#[test]
fn items_without_a_line_have_succeeded_if_the_command_says_so_by_its_exit_code() {
    let tasks = Tasks::one();
    tasks.worked(0, r#"cat > /dev/null; echo '{"itemIdentifier":"j/2","code":"bad","message":"no"}'"#);
    let beats = tasks.sent("beat");
    let failures = json!([{ "itemIdentifier": "j/2", "code": "bad", "message": "no" }]);
    let all = json!({ "token": "t", "itemIdentifiers": names(3), "batchItemFailures": failures });
    assert_eq!(beats.last(), Some(&all));
}

#[test]
fn a_command_that_crashes_fails_at_the_items_without_a_line() {
    for (script, why) in [("exit 7", "exit status: 7"), ("kill -9 $$", "signal: 9")] {
        let tasks = Tasks::one();
        let said = tasks.worked(3, &format!("{FIRST} {script}"));
        assert!(said.contains("1 of 3 items done, the command failed: ") && said.contains(why), "{said}");
        assert_eq!((tasks.reported(), tasks.release()), (names(1), json!(true)));
    }
}

#[test]
fn a_command_that_crashes_with_its_last_item_done_has_failed_at_nothing() {
    let tasks = Tasks::one();
    tasks.worked(0, &format!("{WELL}; exit 7"));
    assert_eq!((tasks.reported(), tasks.sent("release").len()), (names(3), 0));
}

#[test]
fn a_command_that_prints_anything_else_fails_and_is_not_quoted() {
    let garbage = [
        ("echo secret", "no JSON"),
        ("printf '\\377\\n'", "not UTF-8"),
        ("echo '{\"itemIdentifier\":\"secret\"}'", "not in the task"),
        ("head -c 3000000 /dev/zero; sleep 60", "longer than 1048576 bytes"),
    ];
    for (script, why) in garbage {
        let tasks = Tasks::one();
        let said = tasks.worked(3, &format!("{FIRST} {script}; sleep 60"));
        assert!(said.contains(why) && !said.contains("secret"), "{said}");
        assert_eq!((tasks.reported(), tasks.release()), (names(1), json!(true)), "{script}");
    }
}

#[test]
fn a_command_of_hours_is_beaten_for_and_ends_with_an_interrupted_worker() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let tasks = Tasks::one();
    let mut worker =
        tasks.worker(&[], &format!("echo $$ > {}; {FIRST} exec sleep 3600", pid.display())).spawn().unwrap();
    // Longer than a worker without beats may work.
    until("it does not beat", || tasks.sent("beat").len() > 6);
    assert_eq!(tasks.reported(), names(1), "what is done is reported while the command runs");
    assert_eq!(tasks.sent("release").len(), 0);
    interrupt(&worker);
    assert_eq!(ended(&mut worker), Some(130));
    assert_eq!(tasks.release(), json!(false));
    no_process_of(&pid);
}

#[test]
fn a_pause_reaches_the_command_which_may_finish_its_item() {
    for word in ["paused", "stopping"] {
        let tasks = Tasks::new(1, 3, move |_, before| order(if before == 0 { "continue" } else { word }));
        let finishes = r#"trap 'echo "{\"itemIdentifier\":\"j/2\"}"; exit 0' TERM; sleep 3600 & wait"#;
        let said = tasks.worked(0, &format!("{FIRST} {finishes}"));
        assert!(said.contains(&format!("2 of 3 items done, the rest given back: {word}")), "{said}");
        assert_eq!((tasks.reported(), tasks.release()), (names(2), json!(false)), "the third one has not succeeded");
    }
}

#[test]
fn a_transient_failure_is_reported_once_the_command_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let at_work = folder.path().join("at-work");
    let third = r#"echo "{\"itemIdentifier\":\"j/3\"}";"#;
    // The API lends the second item again, or counts its failure because it is not the first one.
    for (word, third, releases, says) in [
        ("finished", third, 0, "2 of 3 items done, an item failed with a transient error"),
        ("continue", "", 1, "1 of 3 items done, the rest given back: an item failed with a transient error"),
    ] {
        let early = Arc::new(Mutex::new(false));
        let (running, is_early) = (at_work.clone(), Arc::clone(&early));
        let tasks = Tasks::new(1, 3, move |beat, _| {
            let gives_back = beat["batchItemFailures"].is_array();
            *is_early.lock().unwrap() |= gives_back && running.exists();
            order(if gives_back { word } else { "continue" })
        });
        // The first item takes longer than a beat, and the third one is at work when it ends.
        let script = format!(
            r#"touch {0}; trap 'rm {0}; {third} exit 0' TERM; echo '{{"itemIdentifier":"j/2","transient":true}}'
            sleep 1; {FIRST} sleep 3600 & wait"#,
            at_work.display()
        );
        let said = tasks.worked(0, &script);
        assert!(said.contains(says), "{said}");
        assert!(!*early.lock().unwrap(), "the third item was at work");
        assert_eq!(tasks.sent("release").len(), releases);
        assert_eq!(tasks.reported(), names(3 - releases));
    }
}

#[test]
fn a_command_is_stopped_before_another_worker_may_begin() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let api_is_down = Arc::new(Mutex::new(true));
    let is_down = Arc::clone(&api_is_down);
    let down = (503, json!({ "message": "Service Unavailable" }));
    let tasks = Tasks::new(1, 3, move |_, before| match before {
        0 => order("continue"),
        _ if *is_down.lock().unwrap() => down.clone(),
        _ => order("continue"),
    });
    let ignores = format!("trap '' TERM; echo $$ > {}; {FIRST} while :; do sleep 0.1; done", pid.display());
    let mut worker = tasks.worker(&["--until-empty"], &ignores).spawn().unwrap();
    until("it does not begin", || pid.exists() && tasks.sent("beat").len() > 2);
    no_process_of(&pid);
    *api_is_down.lock().unwrap() = false;
    assert_eq!(ended(&mut worker), Some(0));
    let beats = tasks.sent("beat");
    assert_eq!(beats[1], beats[2], "repeated as it was");
    assert_eq!(tasks.reported().last(), Some(&json!("j/1")));
    assert_eq!(tasks.release(), json!(false));
}

#[test]
fn a_task_that_another_worker_has_is_dropped() {
    let gone = ProblemCode::TaskGone;
    let body = serde_json::to_value(gone.problem("Drop it.")).unwrap();
    let tasks = Tasks::new(1, 3, move |_, before| match before {
        0 => order("continue"),
        _ => (gone.status(), body.clone()),
    });
    let said = tasks.worked(0, "exec sleep 3600");
    assert!(said.contains("no longer this worker's"), "{said}");
    assert_eq!(tasks.sent("release").len(), 0);
}

#[test]
fn outcomes_that_the_api_refuses_are_a_failure_of_the_command() {
    let refused = ProblemCode::InvalidRequest;
    let body = serde_json::to_value(refused.problem("The job type has no outputs.")).unwrap();
    let tasks = Tasks::new(1, 1, move |beat, _| match beat["itemIdentifiers"].is_array() {
        true => (refused.status(), body.clone()),
        false => order("continue"),
    });
    let said = tasks.worked(3, "true");
    assert!(said.contains("the command failed: beat task: The job type has no outputs"), "{said}");
    assert_eq!(tasks.release(), json!(true));
}

#[test]
fn a_worker_that_the_api_refuses_or_without_a_command_ends_at_once() {
    let tasks = Tasks::new(1, 3, |_, _| order("continue"));
    let (_, error) = said(1, &mut rowmill(&["work", "--type", "render", "--url", &tasks.url, "--", "/no/such"]));
    assert!(error.contains("cannot start `/no/such`"), "{error}");
    assert_eq!(tasks.release(), json!(false), "the items are not to blame");

    let denied = Tasks::new(1, 3, |_, _| (403, json!({ "message": "Forbidden" })));
    let error = denied.worked(1, "true");
    assert!(error.contains("beat task: Forbidden (HTTP 403)"), "{error}");
    said(2, &mut rowmill(&["work", "--type", "render", "--url", &tasks.url]));
    said(2, &mut rowmill(&["work", "--url", &tasks.url, "--", "true"]));
}

#[test]
fn files_are_stored_before_their_items_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("frame.png");
    std::fs::write(&file, "abc").unwrap();
    let line = |item: &str, more: &str| format!(r#"echo '{{"itemIdentifier":"{item}"{more}}}';"#);
    let files = format!(r#","files":["{}"]"#, file.display());
    let tasks = Tasks::one();
    let script = line("j/1", &files) + &line("j/2", "") + &line("j/3", &format!(r#"{files},"output":{{"n":1.50}}"#));
    tasks.worked(0, &script);
    let asked = tasks.sent("products");
    let wanted = json!({
        "token": "t", "itemIdentifier": "j/1", "name": "frame.png", "contentType": "image/png", "bytes": 3,
    });
    assert_eq!(asked[0]["itemIdentifier"], wanted["itemIdentifier"]);
    assert_eq!((&asked[0]["name"], &asked[0]["bytes"], asked.len()), (&wanted["name"], &wanted["bytes"], 2));
    assert_eq!(tasks.sent("frame.png").len(), 2, "the bytes");
    let outputs: Vec<Value> =
        tasks.sent("beat").iter().flat_map(|beat| beat["outputs"].as_array().cloned().unwrap_or_default()).collect();
    let named = |item: &str, output: &str| {
        let output: Value = serde_json::from_str(output).unwrap();
        json!({ "itemIdentifier": item, "output": output, "products": ["frame.png"] })
    };
    assert_eq!(outputs, [named("j/1", "{}"), named("j/3", r#"{"n":1.50}"#)]);

    let missing = Tasks::one();
    let said = missing.worked(3, &line("j/1", r#","files":["/no/such"]"#));
    assert!(said.contains("a file of a line is not stored: there is no file `/no/such`"), "{said}");
    assert_eq!(missing.reported().len(), 0);
}

#[test]
fn an_outdated_worker_ends_with_the_reason() {
    let tasks = Tasks::one();
    tasks.worked(0, WELL);
    assert_eq!(tasks.sent("lease")[0]["client"], format!("rowmill/{}", env!("CARGO_PKG_VERSION")));
    said(0, &mut tasks.worker(&["--until-empty", "--client", "render/1.4.0"], WELL));
    assert_eq!(tasks.sent("lease").last().unwrap()["client"], "render/1.4.0");

    let url = serve(|connection| {
        receive(connection);
        let outdated = ProblemCode::ClientOutdated;
        let body = serde_json::to_value(outdated.problem("Tasks of type `render` need 1.4.0.")).unwrap();
        reply(connection, outdated.status(), &body);
    });
    let (_, error) = said(1, &mut rowmill(&["work", "--type", "render", "--url", &url, "--", "true"]));
    assert!(error.contains("lease task: Tasks of type `render` need 1.4.0 (HTTP 403, client_outdated)"), "{error}");
}

#[test]
fn a_worker_works_on_several_tasks_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    let tasks = Tasks::new(3, 1, |beat, _| order(if ends_with(beat, "j/1") { "finished" } else { "continue" }));
    // None of them ends before all have begun.
    let script = format!("mktemp {here}/XXXXXX; while [ $(ls {here} | wc -l) -lt 3 ]; do sleep 0.05; done");
    let script = script.replacen("; while", " > /dev/null; while", 1);
    said(0, &mut tasks.worker(&["--until-empty", "--parallel", "3"], &script));
    assert_eq!(tasks.reported().len(), 3);
}
