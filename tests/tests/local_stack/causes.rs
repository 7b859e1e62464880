//! The causes of failed rows on the stack, against a count of their own, and a redrive of one of them.

use std::collections::BTreeMap;

use acceptance::local_stack::{LocalStack, answer, refused};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

const ROWS: u64 = 200_000;

/// A row, and the code, column and rule of its failure. Seven of a hundred fail, each for another cause.
fn row(number: u64) -> (Vec<u8>, Option<[&'static str; 3]>) {
    let (text, cause) = match number % 100 {
        1 => (format!("{number},-1,a@b"), Some(["schema_violation", "age", "minimum"])),
        20 => (format!("{number},999,a@b"), Some(["schema_violation", "age", "maximum"])),
        30 => (format!("{number},x,a@b"), Some(["schema_violation", "age", "type"])),
        40 => (format!("{number},7,nobody"), Some(["schema_violation", "mail", "pattern"])),
        50 => (format!("{number},7"), Some(["ragged_row", "", ""])),
        60 => (",7,a@b".to_owned(), Some(["schema_violation", "id", "required"])),
        70 if number % 300 == 70 => return (b"7,7,\xff@".to_vec(), Some(["invalid_utf8", "mail", ""])),
        _ => (format!("{number},7,a@b"), None),
    };
    (text.into_bytes(), cause)
}

/// The causes of the failed rows of a job, with their numbers.
async fn causes(stack: &LocalStack, job: &str) -> BTreeMap<[String; 3], u64> {
    let results = answer(stack.get(&format!("/api/jobs/{job}/results"))).await.1;
    assert_eq!(results["otherCauses"], 0, "{results}");
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let causes = results["causes"].as_array().expect("causes").iter().map(|cause| {
        let names = ["code", "column", "rule"].map(|name| text(cause, name));
        (names, cause["items"].as_u64().expect("a number"))
    });
    causes.collect()
}

#[test]
fn seven_causes_of_two_hundred_thousand_rows_are_counted_and_one_of_them_is_redriven() {
    on_the_stack(async |stack| {
        let (mut file, mut expected) = (b"id,age,mail\n".to_vec(), BTreeMap::new());
        let mut ragged = "id,age,mail,row\n".to_owned();
        for number in 1..=ROWS {
            let (text, cause) = row(number);
            file.extend(text);
            file.push(b'\n');
            if let Some(cause) = cause {
                *expected.entry(cause.map(str::to_owned)).or_default() += 1;
            }
            // Corrections of all rows of two causes.
            if [1, 50].contains(&(number % 100)) {
                ragged += &format!("{number},7,a@b,{number}\n");
            }
        }
        let schema = json!({
            "required": ["id"],
            "properties": {
                "id": {"type": "integer"},
                "age": {"type": "integer", "minimum": 0, "maximum": 150},
                "mail": {"type": "string", "pattern": "@"},
            },
        });
        let upload = stack.upload("application/octet-stream", file).await;
        let job = stack.create("validate", &upload, json!({ "format": "csv", "schema": schema })).await;
        let ended = stack.ended(&job).await;
        let failed: u64 = expected.values().sum();
        assert_eq!((&ended["itemCount"], &ended["itemsFailed"]), (&json!(ROWS), &json!(failed)), "{ended}");
        assert_eq!((causes(stack, &job).await, expected.len()), (expected.clone(), 7));

        for cause in [["schema_violation", "mail", "pattern"], ["ragged_row", "", ""]] {
            let [code, column, rule] = cause;
            let filter = format!("failed&code={code}&column={column}&rule={rule}");
            let rows: Vec<u64> =
                stack.items(&job, &filter, 1000).await.iter().filter_map(|item| item["row"].as_u64()).collect();
            let expected = (1..=ROWS).filter(|number| row(*number).1 == Some(cause));
            assert_eq!(rows, expected.collect::<Vec<_>>(), "{cause:?}");
        }

        let path = format!("/api/jobs/{job}/redrive");
        let unknown = json!({ "select": { "causes": [{ "code": "ragged_row", "column": "age" }] } });
        refused(stack.post(&path).json(&unknown), StatusCode::UNPROCESSABLE_ENTITY, "invalid_request").await;
        let corrected = stack.upload("text/csv", ragged).await;
        let select = json!({ "causes": [{ "code": "ragged_row" }] });
        let request = stack.post(&path).json(&json!({ "fileGuid": corrected, "select": select }));
        let (status, redriven) = answer(request).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{redriven}");
        stack.ended(&job).await;
        expected.remove(&["ragged_row", "", ""].map(str::to_owned));
        assert_eq!(causes(stack, &job).await, expected);
        let audit = stack.audit(&job).await;
        assert_eq!(audit["verdict"], "proved", "{audit}");
    });
}
