//! Runs the Python example of a target.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use rowmill_core::job_types::target_type::read_answer;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::{Item, ItemOutcome};
use rowmill_core::ports::{Target, TargetError, TargetItem, TargetRequest};
use rowmill_core::text::{Chunk, ChunkMode, Dialect, Format, read_items};
use serde_json::Map;

/// Calls the handler of a Python file as Lambda does.
const CALL_HANDLER: &str = "import json, runpy, sys\n\
    handler = runpy.run_path(sys.argv[1])['handler']\n\
    json.dump(handler(json.load(sys.stdin), None), sys.stdout)";

/// A function in Python; each call starts a process.
struct Python;

#[async_trait]
impl Target for Python {
    async fn call(&self, request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/examples/measure.py");
        let mut python = Command::new("python3")
            .args(["-c", CALL_HANDLER])
            .arg(example)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is there");
        let event = serde_json::to_vec(request).unwrap();
        python.stdin.take().unwrap().write_all(&event).unwrap();
        let output = python.wait_with_output().unwrap();
        assert!(output.status.success());
        Ok(output.stdout)
    }
}

#[tokio::test]
async fn the_example_fails_items_without_a_name_and_measures_the_others() {
    let job_guid: JobGuid = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
    let file = "1,Ada\n2,\n3,\"Zoë\nZ\"\n".as_bytes();
    let chunk = Chunk { offset: 0, length: file.len() as u64, first_row: 1, items: 3, mode: ChunkMode::Items };
    let columns: Arc<[String]> = ["id", "name"].map(String::from).to_vec().into();
    let records = read_items(&chunk, file, &Dialect { format: Format::Csv, delimiter: b',' }, &columns);
    let items: Vec<Item> = records.map(|raw| Item { job_guid, row: raw.row, record: raw.record.unwrap() }).collect();
    let params = Map::new();
    let items = items.iter().map(TargetItem::from).collect();
    let request = TargetRequest { job_guid, job_type: "measure", params: &params, items };
    let answer = Python.call(&request).await.unwrap();
    let identifiers: Vec<&str> = request.items.iter().map(|item| item.item_identifier.as_str()).collect();
    let results = read_answer(&answer, &identifiers, true).unwrap();
    assert_eq!(results[0], Ok(ItemOutcome::Output(r#"{"name":"Ada","length":3}"#.into())));
    let error = results[1].as_ref().unwrap_err();
    assert_eq!((error.code.as_str(), error.column.as_deref(), error.transient), ("no_name", Some("name"), false));
    let Ok(ItemOutcome::Output(line)) = &results[2] else { panic!("{results:?}") };
    assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["length"], 5);
}

#[test]
fn the_example_has_at_most_the_ten_lines_that_the_docs_promise() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../infra/examples/measure.py");
    assert!(std::fs::read_to_string(example).unwrap().lines().count() <= 10);
}
