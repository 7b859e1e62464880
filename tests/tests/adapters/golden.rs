//! The stored formats: what each version wrote lies in `tests/data/golden`, and every later one must read it.
//! [CONTRIBUTING.md](../../../CONTRIBUTING.md#change-a-stored-format) says what to do if a test fails here.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

use aws_sdk_dynamodb::types::AttributeValue;
use complete_job::compose::Composition;
use rowmill_core::model::chunk_index::ChunkIndex;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, FetchMessage, SplitMessage};
use rowmill_core::model::results::Manifest;
use rowmill_core::model::run_output::RunOutput;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::golden_samples::{Stores, TABLES, messages, objects};

/// The values that a version's files are read as.
const READ: &str = "read.txt";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/data/golden"))
}

fn is_to_be_written() -> bool {
    std::env::var_os("ROWMILL_WRITE_GOLDEN").is_some()
}

/// What this version writes, by the name of the file.
async fn written() -> &'static BTreeMap<String, Value> {
    static WRITTEN: OnceCell<BTreeMap<String, Value>> = OnceCell::const_new();
    WRITTEN
        .get_or_init(|| async {
            let stores = Stores::new().await;
            stores.write().await;
            let mut files = BTreeMap::from([("messages".to_owned(), messages()), ("objects".to_owned(), objects())]);
            for table in TABLES {
                files.insert(file_of(table), Value::Array(rows(&stores, table).await));
            }
            if is_to_be_written() {
                let folder = folder().join(env!("CARGO_PKG_VERSION"));
                fs::create_dir_all(&folder).unwrap();
                for (name, content) in &files {
                    fs::write(folder.join(format!("{name}.json")), text(content)).unwrap();
                }
            }
            files
        })
        .await
}

fn file_of(table: &str) -> String {
    table.trim_end_matches("-0").to_owned()
}

/// The JSON of a file: a line for each row, queue or object, so that a difference shows one of them.
fn text(content: &Value) -> String {
    let lines = |lines: Vec<String>| lines.join(",\n");
    match content {
        Value::Array(rows) => format!("[\n{}\n]\n", lines(rows.iter().map(Value::to_string).collect())),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, form)| format!("{}: {form}", json!(name)));
            format!("{{\n{}\n}}\n", lines(entries.collect()))
        }
        other => panic!("no content of a file: {other}"),
    }
}

/// The rows of a table as DynamoDB JSON, sorted by key.
async fn rows(stores: &Stores, table: &str) -> Vec<Value> {
    let items = stores.server.client.scan().table_name(table).into_paginator().items().send();
    let mut rows: Vec<Value> = items.collect::<Result<Vec<_>, _>>().await.unwrap().into_iter().map(row).collect();
    rows.sort_by_key(|row| {
        ["jobId", "row", "scope", "entry", "fileGuid", "bucket", "key"].map(|key| row[key].to_string())
    });
    rows
}

fn row(item: HashMap<String, AttributeValue>) -> Value {
    let mut row = serde_json::to_value(serde_dynamo::Item::from(item)).unwrap();
    // The token of a write of the job row is random.
    for place in 0..4 {
        if let Some(token) = row.get_mut(format!("write{place}")) {
            *token = json!({"S": "token"});
        }
    }
    row
}

fn parsed<T: DeserializeOwned>(form: &impl Serialize) -> Result<T, String> {
    let text = serde_json::to_string(form).unwrap();
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

fn message(form: &Value) -> String {
    match form["kind"].as_str() {
        Some("split") => format!("{:?}", parsed::<SplitMessage>(form)),
        Some("chunk") => format!("{:?}", parsed::<ChunkMessage>(form)),
        Some("fetch") => format!("{:?}", parsed::<FetchMessage>(form)),
        Some("completion") => format!("{:?}", parsed::<CompletionMessage>(form)),
        _ => panic!("a message of another kind: {form}"),
    }
}

fn object(name: &str, form: &Value) -> String {
    match name {
        "chunkIndex" => format!("{:?}", parsed::<ChunkIndex>(form)),
        "manifest" => format!("{:?}", parsed::<Manifest>(form)),
        "runOutput" => format!("{:?}", RunOutput::from_bytes(form.as_str().unwrap().as_bytes())),
        "composition" => format!("{:?}", parsed::<Composition>(form)),
        other => panic!("an object of another format: {other}"),
    }
}

/// What this version reads in these files, a line for each value.
async fn read(files: &BTreeMap<String, Value>) -> String {
    let stores = Stores::new().await;
    for table in TABLES {
        for row in files.get(&file_of(table)).and_then(Value::as_array).into_iter().flatten() {
            let item: serde_dynamo::Item = serde_json::from_value(row.clone()).unwrap();
            let request = stores.server.client.put_item().table_name(table).set_item(Some(item.into()));
            request.send().await.unwrap();
        }
    }
    let mut lines = stores.read().await;
    for (queue, forms) in files["messages"].as_object().unwrap() {
        lines.extend(forms.as_array().unwrap().iter().map(|form| format!("{queue}: {}", message(form))));
    }
    let objects = files["objects"].as_object().unwrap();
    lines.extend(objects.iter().map(|(name, form)| format!("{name}: {}", object(name, form))));
    lines.join("\n") + "\n"
}

/// Compares line by line, so that a failure shows one value.
fn assert_same(found: &str, golden: &str, of: &str) {
    for (found, golden) in found.lines().zip(golden.lines()) {
        assert_eq!(found, golden, "{of} differs");
    }
    assert_eq!(found.lines().count(), golden.lines().count(), "{of} has other lines");
}

#[tokio::test]
async fn this_version_writes_what_its_golden_files_hold() {
    let folder = folder().join(env!("CARGO_PKG_VERSION"));
    for (name, content) in written().await {
        let path = folder.join(format!("{name}.json"));
        let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_same(&text(content), &golden, &path.display().to_string());
    }
}

#[tokio::test]
async fn the_golden_files_of_every_version_are_read_as_before() {
    let names = written().await;
    let mut versions = 0;
    for version in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()) {
        let file = |name: &String| {
            // A table that came later has no file.
            let text = fs::read_to_string(version.join(format!("{name}.json"))).ok()?;
            Some((name.clone(), serde_json::from_str(&text).unwrap()))
        };
        let files = names.keys().filter_map(file).collect();
        let (read, golden) = (read(&files).await, version.join(READ));
        if is_to_be_written() {
            fs::write(&golden, &read).unwrap();
        }
        assert_same(&read, &fs::read_to_string(&golden).unwrap(), &golden.display().to_string());
        versions += 1;
    }
    assert!(versions > 0, "no golden files");
}
