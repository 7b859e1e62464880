//! The audit of jobs, over HTTP and by the command.

use acceptance::local_stack::{LocalStack, accepted, answer, refused};
use aws_sdk_dynamodb::types::AttributeValue;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::redrives::file_with_bad_rows;
use crate::stack::on_the_stack;

/// The audit of a job.
pub async fn audit(stack: &LocalStack, job: &str) -> Value {
    let (status, proof) = answer(stack.get(&format!("/api/jobs/{job}/audit"))).await;
    assert_eq!(status, StatusCode::OK, "{proof}");
    proof
}

/// Adds one to a number of a row, as nobody should.
pub async fn damage(stack: &LocalStack, job: &str, row: &str, field: &str, by: i64) {
    let request = stack.dynamodb.update_item().table_name(stack.output("JobsTable"));
    let request = request.key("jobId", AttributeValue::S(job.to_owned())).key("row", AttributeValue::S(row.to_owned()));
    let request = request.update_expression("ADD #field :by").expression_attribute_names("#field", field);
    let answer = request.expression_attribute_values(":by", AttributeValue::N(by.to_string())).send().await;
    answer.expect("the table takes it");
}

#[test]
fn a_job_is_proved_through_its_redrives_and_damage_is_named() {
    on_the_stack(async |stack| {
        let file = stack.upload("text/csv", file_with_bad_rows()).await;
        let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        let job = stack.create("validate", &file, json!({ "schema": schema })).await;
        let early = audit(stack, &job).await;
        assert!(["active", "proved"].contains(&early["verdict"].as_str().expect("a verdict")), "{early}");
        stack.ended(&job).await;
        let proof = audit(stack, &job).await;
        let counts = [&proof["itemCount"], &proof["itemsSucceeded"], &proof["itemsFailed"], &proof["chunksOpen"]];
        assert_eq!((&proof["verdict"], counts), (&json!("proved"), [&json!(1500), &json!(1497), &json!(3), &json!(0)]));
        assert_eq!(audit(stack, &job).await["evidence"], proof["evidence"], "what is stored has not changed");

        let corrected = stack.upload("text/csv", "id,amount,row\n1400,1400,1400\n10,10,10\n").await;
        let redrive = stack.post(&format!("/api/jobs/{job}/redrive")).json(&json!({ "fileGuid": corrected }));
        accepted(redrive).await;
        stack.ended(&job).await;
        let proof = audit(stack, &job).await;
        let counts = [&proof["attempt"], &proof["itemsSucceeded"], &proof["itemsFailed"]];
        assert_eq!((&proof["verdict"], counts), (&json!("proved"), [&json!(2), &json!(1499), &json!(1)]), "{proof}");

        let ran = stack.runs(&["audit", &job]).await;
        assert!(ran.code == Some(0) && ran.out.starts_with("Audit of attempt 2: proved\n"), "{ran:?}");
        let ran = stack.runs(&["audit", &job, "--json"]).await;
        let printed: Value = serde_json::from_str(ran.out.trim_end()).expect("a line of JSON");
        assert_eq!((ran.code, &printed["digest"]), (Some(0), &proof["digest"]));

        damage(stack, &job, "tally#1#00000000", "failed", 1).await;
        damage(stack, &job, "tally#1#00000000", "succeeded", -1).await;
        let ran = stack.runs(&["audit", &job]).await;
        let refuted = "refuted\ntally_differs: Tally 0 of attempt 1 counts";
        assert!(ran.code == Some(1) && ran.out.contains(refuted), "{ran:?}");
        damage(stack, &job, "tally#1#00000000", "failed", -1).await;
        damage(stack, &job, "tally#1#00000000", "succeeded", 1).await;
        assert_eq!(audit(stack, &job).await["digest"], proof["digest"], "nothing is wrong any more");
        stack.delete_objects_of(&format!("{job}/2/chunks/")).await;
        let proof = audit(stack, &job).await;
        assert_eq!(proof["finding"]["code"], "chunk_index_missing", "{proof}");
    });
}

#[test]
fn an_audit_of_no_job_and_a_cursor_of_nobody_are_refused() {
    on_the_stack(async |stack| {
        let unknown = stack.get("/api/jobs/01890a5d-ac96-774b-bcce-b302099a8057/audit");
        refused(unknown, StatusCode::NOT_FOUND, "not_found").await;
        let file = stack.upload("text/csv", "a\n1\n").await;
        let job = stack.create("validate", &file, json!({})).await;
        stack.ended(&job).await;
        let forged = stack.get(&format!("/api/jobs/{job}/audit?after=AAAA"));
        refused(forged, StatusCode::BAD_REQUEST, "invalid_query").await;
    });
}
