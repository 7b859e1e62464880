//! Every message delivered twice: no count changes, and the job completes once.

use std::time::Duration;

use acceptance::copies::{chunk_messages, completion_message, split_message};
use acceptance::files;
use serde_json::json;

use crate::stack::on_the_stack;

#[test]
fn every_message_delivered_twice_changes_no_count_and_completes_the_job_once() {
    on_the_stack(async |stack| {
        let mut file = files::plain_csv(40_000);
        file.extend_from_slice(b"40001,ragged\n");
        let upload = stack.upload("text/csv", file.clone()).await;
        let job = stack.create("validate", &upload, json!({})).await;
        let job_guid = job.parse().expect("a guid");
        let (split, completion) = (split_message(job_guid), completion_message(job_guid));
        // Once while the job runs: a chunk whose tally does not exist yet comes too early and is delivered again, later.
        stack.send("JobsQueueUrl", &split).await;
        let messages = chunk_messages(job_guid, &file, 500);
        assert_eq!(messages.len(), 81);
        while stack.job(&job).await["itemCountFinal"] != true {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for message in &messages {
            stack.send("ItemsQueueUrl", message).await;
        }
        stack.send("CompletionsQueueUrl", &completion).await;
        let ended = stack.ended(&job).await;
        // And once more when it has ended.
        for message in &messages {
            stack.send("ItemsQueueUrl", message).await;
        }
        stack.send("JobsQueueUrl", &split).await;
        stack.send("CompletionsQueueUrl", &completion).await;
        stack.queues_are_empty().await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(40_000), &json!(1)), "{ended}");
        assert_eq!(stack.job(&job).await, ended, "nothing moved after the end");
        let rows = stack.job_rows(&job).await;
        assert_eq!(rows["job"].number("completions"), 1);
        let counted: u64 =
            rows.iter().filter(|(key, _)| key.starts_with("tally#")).map(|(_, row)| row.number("done")).sum();
        assert_eq!(counted, 81, "each chunk is committed once");
        assert_eq!(stack.failed_items(&job).await.len(), 1);
    });
}
