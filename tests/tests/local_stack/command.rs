//! The command as a process: what it prints and how it exits.

use acceptance::local_stack::{LocalStack, Ran, answer, ran, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::live::long_job;
use crate::stack::on_the_stack;
use crate::uploads::announce;

/// A user with a folder of its own, in which the command remembers uploads.
pub struct User<'a> {
    stack: &'a LocalStack,
    folder: TempDir,
}

impl<'a> User<'a> {
    pub fn of(stack: &'a LocalStack) -> Self {
        Self { stack, folder: tempfile::tempdir().expect("a folder") }
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Runs the command to its end.
    pub async fn runs(&self, arguments: &[&str]) -> Ran {
        let mut command = self.stack.command(arguments);
        command.env("XDG_STATE_HOME", self.folder.path().join("state"));
        ran(command).await
    }
}

/// The rest of the line that begins so.
fn rest_of_line<'a>(text: &'a str, beginning: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(beginning));
    found.unwrap_or_else(|| panic!("a line with {beginning:?}: {text}"))
}

#[test]
fn the_command_previews_a_file_and_then_its_upload() {
    on_the_stack(async |stack| {
        let user = User::of(stack);
        let file = user.file("cities.csv", "id;city\n1;Köln\n2;Orléans\n3\n".as_bytes());
        let ran = user.runs(&["preview", &file, "--rows", "3"]).await;
        let heading = "CSV, utf-8, delimiter `;`, header in row 1, 2 columns\n";
        assert!(ran.code == Some(0) && ran.out.starts_with(heading), "{}{}", ran.out, ran.err);
        let lines: Vec<String> =
            ran.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[2..6], ["id city", "row integer string", "1 1 Köln", "2 2 Orléans"]);
        assert!(lines[6].is_empty() && lines[7].starts_with("row 3: ragged_row: "), "{}", ran.out);
        let upload = rest_of_line(&ran.err, "Stored as ").to_owned();
        let (_, shown) = answer(stack.get(&format!("/api/uploads/{upload}"))).await;
        assert_eq!((&shown["status"], &shown["fileName"]), (&json!("ready"), &json!("cities.csv")));

        // With the guid nothing is stored again, and a job type says what it thinks of the params.
        let ran = user.runs(&["preview", &upload, "--type", "import", "--dataset", "d", "--key", "nr", "--json"]).await;
        assert!(ran.code == Some(0) && !ran.err.contains("Stored as"), "{}", ran.err);
        let view: Value = serde_json::from_str(&ran.out).expect("one line of JSON");
        assert_eq!(
            (&view["paramsProblem"]["field"], &view["rows"][1]["cells"]),
            (&json!("params.key"), &json!(["2", "Orléans"]))
        );
    });
}

#[test]
fn the_command_deletes_an_upload_whether_it_is_complete_or_not() {
    on_the_stack(async |stack| {
        let user = User::of(stack);
        let size = 70 << 20;
        let upload = announce(stack, "big.csv", size, None).await;
        let guid = upload["fileGuid"].as_str().expect("a guid");
        let part = vec![b'x'; usize::try_from(upload["parts"][0]["size"].as_u64().expect("a size")).expect("fits")];
        assert_eq!(stack.send_signed(&upload["parts"][0], part).await, StatusCode::OK);
        let stored = user.runs(&["upload", &user.file("small.csv", b"a\n1\n")]).await;
        for guid in [guid, stored.out.trim()] {
            let ran = user.runs(&["delete", "upload", guid]).await;
            assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
            assert!(ran.err.contains(&format!("The upload {guid} is deleted.\n")), "{}", ran.err);
            refused(stack.get(&format!("/api/uploads/{guid}")), StatusCode::NOT_FOUND, "not_found").await;
            let ran = user.runs(&["delete", "upload", guid]).await;
            assert!(ran.code == Some(1) && ran.err.contains("There is no upload"), "{:?}: {}", ran.code, ran.err);
        }
    });
}

#[test]
fn the_command_runs_an_upload_that_is_stored_already() {
    on_the_stack(async |stack| {
        let user = User::of(stack);
        let file = user.file("three.csv", b"id,age\n1,20\n2,old\n3,30\n");
        let schema = user.file("schema.json", br#"{"properties":{"age":{"type":"integer"}}}"#);
        let stored = user.runs(&["upload", &file]).await;
        assert_eq!(stored.code, Some(0), "{}", stored.err);
        let upload = stored.out.trim();
        let ran = user.runs(&["run", upload, "--type", "validate", "--schema", &schema]).await;
        assert_eq!(ran.code, Some(3), "some items failed: {}{}", ran.out, ran.err);
        let job = rest_of_line(&ran.out, "  job").trim();
        let shown = stack.job(job).await;
        assert_eq!((&shown["fileGuid"], &shown["itemsFailed"]), (&json!(upload), &json!(1)));
        assert!(ran.out.contains("\n  succeeded  2\n  failed     1\n"), "{}", ran.out);
        assert!(ran.out.contains("Failed rows:\n") && ran.out.contains("2,old"), "{}", ran.out);
    });
}

#[test]
fn the_command_watches_a_job_to_its_end_and_says_how_far_it_is() {
    on_the_stack(async |stack| {
        let user = User::of(stack);
        let job = long_job(stack, 20_000).await;
        let ran = user.runs(&["job", &job, "--watch"]).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        assert!(ran.out.starts_with("Job running, "), "{}", ran.out);
        let (_, summary) = ran.out.split_once("Job complete\n").expect("a summary");
        assert_eq!(rest_of_line(summary, "  job").trim(), job);
        assert!(summary.contains("\n  items      20,000\n  succeeded  20,000\n  failed     0\n"), "{summary}");
    });
}
