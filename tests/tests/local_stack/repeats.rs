//! Every message delivered twice: no count changes, and the job completes once.

use std::time::Duration;

use acceptance::files;
use rowmill_core::ids::Owner;
use rowmill_core::messages::{ChunkMessage, CompletionMessage, SplitMessage};
use rowmill_core::tally::{CHUNKS_PER_TALLY, ChunkAddress};
use rowmill_core::text::{ChunkCutter, ChunkLimits, Dialect, Format, Position};
use serde::Serialize;
use serde_json::json;

use crate::stack::{LocalStack, on_the_stack};

/// The chunk messages of a job. Chunks are a pure function of the file, so a test can make the very messages that
/// `split-job` made.
fn chunk_messages(job: &str, file: &[u8]) -> Vec<ChunkMessage> {
    let data_start = file.iter().position(|byte| *byte == b'\n').expect("a header") as u64 + 1;
    let limits = ChunkLimits { max_items: 500, max_bytes: 1 << 20, max_record_bytes: 1 << 20 };
    let dialect = Dialect { format: Format::Csv, delimiter: b',' };
    let mut cutter = ChunkCutter::new(&dialect, limits, Position { offset: data_start, row: 1 });
    let mut chunks = Vec::new();
    cutter.push(&file[usize::try_from(data_start).expect("fits")..], &mut chunks);
    cutter.finish(&mut chunks).expect("all quotes are closed");
    let address = |number: usize| ChunkAddress {
        attempt: 1,
        tally: u32::try_from(number / CHUNKS_PER_TALLY).expect("fits"),
        index: u8::try_from(number % CHUNKS_PER_TALLY).expect("fits"),
    };
    let message = |(number, chunk)| ChunkMessage {
        job_guid: job.parse().expect("a guid"),
        owner: Owner(Owner::LOCAL.to_owned()),
        address: address(number),
        chunk,
    };
    chunks.into_iter().enumerate().map(message).collect()
}

async fn send<M: Serialize>(stack: &LocalStack, queue: &str, message: &M) {
    let body = serde_json::to_string(message).expect("a message");
    let url = stack.output(queue);
    let sent = stack.sqs.send_message().queue_url(url).message_body(body).send().await;
    sent.expect("the queue takes it");
}

async fn queues_are_empty(stack: &LocalStack) -> bool {
    for queue in ["JobsQueueUrl", "ItemsQueueUrl", "CompletionsQueueUrl"] {
        let attributes = stack
            .sqs
            .get_queue_attributes()
            .queue_url(stack.output(queue))
            .attribute_names(aws_sdk_sqs::types::QueueAttributeName::All)
            .send()
            .await
            .expect("the queue answers");
        let attributes = attributes.attributes().expect("attributes");
        let waiting = attributes
            .iter()
            .filter(|(name, _)| name.as_str().starts_with("ApproximateNumberOfMessages"))
            .any(|(_, count)| count != "0");
        if waiting {
            return false;
        }
    }
    true
}

#[test]
fn every_message_delivered_twice_changes_no_count_and_completes_the_job_once() {
    on_the_stack(async |stack| {
        let mut file = files::plain_csv(40_000);
        file.extend_from_slice(b"40001,ragged\n");
        let upload = stack.upload("text/csv", file.clone()).await;
        let job = stack.create("validate", &upload, json!({})).await;
        let (job_guid, owner) = (job.parse().expect("a guid"), Owner(Owner::LOCAL.to_owned()));
        let split = SplitMessage { job_guid, attempt: 1, owner: owner.clone() };
        let completion = CompletionMessage { job_guid, attempt: 1, owner };
        // Once while the job runs: a chunk whose tally does not exist yet comes too early and is delivered again, later.
        send(stack, "JobsQueueUrl", &split).await;
        let messages = chunk_messages(&job, &file);
        assert_eq!(messages.len(), 81);
        while stack.job(&job).await["itemCountFinal"] != true {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for message in &messages {
            send(stack, "ItemsQueueUrl", message).await;
        }
        send(stack, "CompletionsQueueUrl", &completion).await;
        let ended = stack.ended(&job).await;
        // And once more when it has ended.
        for message in &messages {
            send(stack, "ItemsQueueUrl", message).await;
        }
        send(stack, "JobsQueueUrl", &split).await;
        send(stack, "CompletionsQueueUrl", &completion).await;
        while !queues_are_empty(stack).await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
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
