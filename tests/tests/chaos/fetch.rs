//! A file that is fetched from a server that drops connections, by a function that is killed again and again.
//!
//! `ROWMILL_FETCH_MIB` is its size, 128 by default. `ROWMILL_FETCH_MIB=1024 cargo test --test chaos fetch -- --ignored` fetches
//! 1 GiB.

use std::fmt::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acceptance::file_server::{FileAnswer, FileRequest, FileServer};
use acceptance::local_stack::{answer, until};
use bytes::Bytes;
use reqwest::StatusCode;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::messages::FetchMessage;
use serde_json::{Value, json};

use crate::stack::alone_on_the_stack;

/// Long lines, since a chunk of this stack has few of them.
const LINE_BYTES: usize = 8192;

/// Number of times that the function is killed at most: once for each part that is stored, of 16 MiB each.
const KILLS: u64 = 10;

/// The server of this process.
pub static FILE: OnceLock<FileServer> = OnceLock::new();

fn size() -> usize {
    let mebibytes = std::env::var("ROWMILL_FETCH_MIB").map_or(128, |text| text.parse().expect("a whole number"));
    mebibytes * 1024 * 1024
}

/// These bytes of the file, each line of which tells its place.
fn bytes(range: std::ops::Range<usize>) -> Bytes {
    let (first, last) = (range.start / LINE_BYTES, range.end.div_ceil(LINE_BYTES));
    let mut text = String::with_capacity((last - first) * LINE_BYTES);
    for line in first..last {
        let _ = writeln!(text, "{{\"line\": \"{line:0>width$}\"}}", width = LINE_BYTES - 13);
    }
    let start = range.start - first * LINE_BYTES;
    Bytes::from(text).slice(start..start + range.len())
}

/// Serves the file slowly, and drops every third connection.
pub async fn serve() -> FileServer {
    let connections = AtomicUsize::new(0);
    FileServer::start(move |FileRequest { range, .. }| {
        let range = range.unwrap_or(0..size());
        let range = range.start..range.end.min(size());
        let told = format!("bytes {}-{}/{}", range.start, range.end - 1, size());
        let is_cut = connections.fetch_add(1, Ordering::SeqCst) % 3 == 2;
        let head = format!("206 Partial\r\netag: \"one\"\r\ncontent-type: application/jsonl\r\ncontent-range: {told}");
        FileAnswer { head, body: bytes(range), is_cut }
    })
    .await
}

#[test]
#[ignore = "a process that is killed at its start may keep its message for minutes"]
fn a_file_is_fetched_exactly_however_often_its_function_is_killed() {
    alone_on_the_stack(async |chaos| {
        let stack = &chaos.stack;
        stack.hide_messages_for(&["FetchesQueueUrl"], Duration::from_secs(10)).await;
        let order = json!({ "source": { "url": FILE.get().expect("it runs").url("/lines.jsonl") } });
        let (status, upload) = answer(stack.post("/api/uploads").json(&order)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{upload}");
        let file = upload["fileGuid"].as_str().expect("a guid").to_owned();
        let shown = async || answer(stack.get(&format!("/api/uploads/{file}"))).await.1;
        let stored = async || shown().await["bytesStored"].as_u64().unwrap_or_default();
        let job = stack.create("validate", &file, json!({})).await;
        // After a crash its message comes again in five minutes. This one takes its place.
        let again = FetchMessage { file_guid: file.parse().expect("a guid"), owner: Owner(Owner::LOCAL.to_owned()) };
        let (mut kills, mut seen) = (0, 0);
        while kills < KILLS {
            // A process that is killed before it has done anything takes its message along for a while.
            until("no further part is stored", async || stored().await > seen).await;
            seen = stored().await;
            if shown().await["status"] != "fetching" {
                break;
            }
            if stack.kill_processes_of("fetch-file") > 0 {
                kills += 1;
                stack.send("FetchesQueueUrl", &again).await;
            }
        }
        let ended = stack.ended(&job).await;
        println!("killed {kills} times");
        assert!(kills > 1, "killed {kills} times");
        assert_eq!((&ended["outcome"], &ended["itemsFailed"]), (&json!("succeeded"), &json!(0)), "{ended}");
        assert_eq!(ended["itemsSucceeded"], json!(size() / LINE_BYTES));
        let upload: Value = shown().await;
        assert_eq!((&upload["status"], &upload["size"]), (&json!("ready"), &json!(size())), "{upload}");
        let key = format!("uploads/{file}");
        for start in (0..size()).step_by(32 << 20) {
            let range = start..(start + (32 << 20)).min(size());
            assert!(stack.object_range(&key, range.clone()).await == bytes(range.clone()), "bytes {range:?} differ");
        }
    });
}
