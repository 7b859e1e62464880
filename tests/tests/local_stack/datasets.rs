//! Datasets: what imports have written, as the API and the command show it.

use std::collections::{BTreeMap, BTreeSet};

use acceptance::local_stack::{LocalStack, answer, refused, until};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The records of all pages, by their keys.
async fn records(stack: &LocalStack, dataset: &str, query: &str) -> BTreeMap<String, Value> {
    let (mut found, mut after) = (BTreeMap::new(), String::new());
    loop {
        let path = format!("/api/datasets/{dataset}/records?limit=700&{query}{after}");
        let (status, page) = answer(stack.get(&path)).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        for record in page["records"].as_array().expect("records") {
            let key = record["key"].as_str().expect("a key").to_owned();
            assert_eq!(found.insert(key, record.clone()), None, "{record} is on two pages");
        }
        let Some(next) = page["next"].as_str() else { return found };
        after = format!("&after={}", next.replace('/', "%2F").replace('+', "%2B"));
    }
}

#[test]
fn what_imports_have_written_is_listed_with_the_rows_that_wrote_it() {
    on_the_stack(async |stack| {
        let unknown = stack.get("/api/datasets/browsed/records");
        refused(unknown, StatusCode::NOT_FOUND, "not_found").await;
        let rows = |from: u64, to: u64, city: &str| {
            let rows: Vec<String> = (from..to).map(|n| format!("a/{n}+é,{city}\n")).collect();
            format!("id,city\n{}", rows.concat())
        };
        let file = stack.upload("text/csv", rows(0, 3000, "Rome")).await;
        let params = json!({ "dataset": "browsed", "key": "id" });
        let first = stack.create("import", &file, params.clone()).await;
        stack.ended(&first).await;
        let file = stack.upload("text/csv", rows(2990, 3005, "Oslo")).await;
        let second = stack.create("import", &file, params).await;
        stack.ended(&second).await;

        let all = records(stack, "browsed", "").await;
        assert_eq!(all.keys().cloned().collect::<BTreeSet<_>>(), (0..3005).map(|n| format!("a/{n}+é")).collect());
        for (number, job, row, city) in [
            (0, &first, 1, "Rome"),
            (2989, &first, 2990, "Rome"),
            (2990, &second, 1, "Oslo"),
            (3004, &second, 15, "Oslo"),
        ] {
            let key = format!("a/{number}+é");
            let expected = json!({
                "key": key, "fields": { "id": key, "city": city }, "writtenBy": { "jobGuid": job, "row": row },
            });
            assert_eq!(all[&key], expected);
            let one = records(stack, "browsed", &format!("key=a%2F{number}%2B%C3%A9")).await;
            assert_eq!(one.values().collect::<Vec<_>>(), [&expected]);
        }
        assert_eq!(records(stack, "browsed", "prefix=a%2F299").await.len(), 11, "299 and 2990 to 2999");
        assert!(records(stack, "browsed", "key=none").await.is_empty());

        let (_, list) = answer(stack.get("/api/datasets?limit=1000")).await;
        let of = |list: &Value| {
            let listed = list["datasets"].as_array().expect("a list").iter();
            listed.filter(|dataset| dataset["name"] == "browsed").cloned().collect::<Vec<_>>()
        };
        let [dataset] = of(&list).try_into().expect("one");
        let created_at = &stack.job(&second).await["createdAt"];
        assert_eq!(dataset["lastImport"]["jobGuid"], json!(second));
        let millisecond = |time: &Value| {
            time.as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok()).map(|time| time.as_millisecond())
        };
        assert_eq!(millisecond(&dataset["lastImport"]["createdAt"]), millisecond(created_at));
        assert_eq!(dataset["records"], "/api/datasets/browsed/records");

        let ran = stack.runs(&["datasets", "--limit", "1000", "--json"]).await;
        let listed: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((ran.code, of(&json!({ "datasets": listed }))), (Some(0), vec![dataset]));
        let ran = stack.runs(&["datasets", "browsed", "--prefix", "a/299", "--limit", "3"]).await;
        assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 3));
        let ran = stack.runs(&["datasets", "browsed", "--key", "a/3004+é"]).await;
        let found: Value = serde_json::from_str(&ran.out).expect("a line");
        assert_eq!((ran.code, &found), (Some(0), &all["a/3004+é"]));
        for arguments in [&["datasets", "browsed", "--key", "none"][..], &["datasets", "none"]] {
            let ran = stack.runs(arguments).await;
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        }

        assert_eq!(records(stack, "browsed", "key=a%2F7%2B%C3%A9&prefix=a").await.len(), 1);
        assert!(records(stack, "browsed", "key=a%2F7%2B%C3%A9&prefix=b").await.is_empty());
        for wrong in ["after=x", "after=3.a&prefix=b"] {
            let wrong = stack.get(&format!("/api/datasets/browsed/records?{wrong}"));
            refused(wrong, StatusCode::BAD_REQUEST, "invalid_query").await;
        }
        let job = json!({ "jobType": "export", "params": { "dataset": "browsed-by-nobody" } });
        let (problem, _) =
            refused(stack.post("/api/jobs").json(&job), StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
        assert_eq!(problem["field"], "params.dataset");
    });
}

#[test]
fn records_expire_a_fixed_time_after_the_creation_of_their_job() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", "id,city\n1,Rome\n2,Oslo\n").await;
        let params = |seconds: u64| json!({ "dataset": "expiring", "key": "id", "expiresInSeconds": seconds });
        let job = stack.create("import", &file, params(60)).await;
        stack.ended(&job).await;
        let created_at = stack.job(&job).await["createdAt"].as_str().expect("a time").parse::<jiff::Timestamp>();
        let expires_at = created_at.expect("a time") + jiff::SignedDuration::from_secs(60);
        let again = json!({ "jobType": "import", "fileGuid": file, "params": params(61) });
        let (problem, _) =
            refused(stack.post("/api/jobs").json(&again), StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
        assert_eq!(problem["field"], "params.expiresInSeconds");

        let there = records(stack, "expiring", "").await;
        // They may have expired meanwhile, on a slow machine.
        for record in there.values() {
            let at: jiff::Timestamp = record["expiresAt"].as_str().expect("a time").parse().expect("a time");
            assert_eq!(at.as_millisecond(), expires_at.as_millisecond());
        }
        let (_, list) = answer(stack.get("/api/datasets?limit=1000")).await;
        let listed = list["datasets"].as_array().expect("a list").iter().find(|dataset| dataset["name"] == "expiring");
        assert_eq!(listed.expect("listed")["expiresInSeconds"], 60);
        let stored = stack.records("expiring").await;
        let after_expiry = |row: &acceptance::local_stack::Row| row.number("expiresAt") - expires_at.as_second() as u64;
        assert_eq!(stored.iter().map(after_expiry).collect::<Vec<_>>(), [1, 1], "not a moment too early");

        until("records that nobody sees", async || records(stack, "expiring", "").await.is_empty()).await;
        assert!(jiff::Timestamp::now() >= expires_at);
        let export = json!({ "jobType": "export", "params": { "dataset": "expiring" } });
        let (_, export) = answer(stack.post("/api/jobs").json(&export)).await;
        let export = stack.ended(export["jobGuid"].as_str().expect("a job")).await;
        assert_eq!((&export["itemCount"], &export["outcome"]), (&json!(0), &json!("empty")), "{export}");
    });
}
