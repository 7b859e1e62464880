//! Jobs of high and low priority: each has queues and workers of its own, and survives what jobs of normal priority
//! survive.

use acceptance::files;
use acceptance::local_stack::LocalStack;
use rowmill_core::model::job::Priority;
use serde_json::{Value, json};

use crate::permissions::{drop_requested, give_up};

/// The rows of each job, in chunks of ten in the stack of the permissions: three chunks.
const ROWS: u64 = 25;

/// Where the chunks of a job of this priority wait.
fn items_queue(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "ItemsHighQueueUrl",
        Priority::Normal => "ItemsQueueUrl",
        Priority::Low => "ItemsLowQueueUrl",
    }
}

async fn validate(stack: &LocalStack, file: &str, priority: Priority) -> String {
    let request = json!({ "jobType": "validate", "fileGuid": file, "priority": priority, "maxConcurrency": 1 });
    stack.create_from(&request).await
}

async fn completes(stack: &LocalStack, job: &str, succeeded: u64) {
    let ended = stack.ended_with_sweeps(job).await;
    assert_eq!((&ended["status"], &ended["itemsSucceeded"]), (&json!("completed"), &json!(succeeded)), "{ended}");
}

/// The workers of the other priorities take no messages, as if they were busy.
pub async fn a_job_of_each_priority_waits_behind_no_other_priority(stack: &LocalStack) {
    let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
    for priority in Priority::ALL {
        let others: Vec<_> = Priority::ALL.into_iter().filter(|other| *other != priority).map(items_queue).collect();
        let behind = if priority == Priority::Normal { Priority::Low } else { Priority::Normal };
        stack.deliver_from(&others, false).await;
        let waiting = validate(stack, &file, behind).await;
        stack.job_when(&waiting, |shown| shown["itemCountFinal"] == true).await;
        let job = validate(stack, &file, priority).await;
        let ended = stack.ended(&job).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["priority"]), (&json!(ROWS), &json!(priority)), "{ended}");
        let shown = stack.job(&waiting).await;
        assert_eq!((&shown["itemProgress"], &shown["priority"]), (&json!(0), &json!(behind)), "{shown}");
        stack.deliver_from(&others, true).await;
        completes(stack, &waiting, ROWS).await;
    }
}

/// Each message of a job with high or low priority is lost or given up once.
pub async fn jobs_of_each_priority_survive_lost_messages(stack: &LocalStack) {
    let file = stack.upload("text/csv", files::plain_csv(ROWS)).await;
    for priority in [Priority::High, Priority::Low] {
        let queue = items_queue(priority);
        stack.deliver_to("ProcessItemsFunctionName", false).await;
        let job = validate(stack, &file, priority).await;
        stack.take_chunk(queue, &job, 0).await;
        let again = stack.take_with_sweeps(queue).await;
        assert_eq!((&again["jobGuid"], &again["priority"]), (&json!(job), &json!(priority)), "{again}");
        give_up(stack, &again).await;
        let second = stack.take_chunk(queue, &job, 1).await;
        stack.act(&job, "pause").await;
        stack.act(&job, "resume").await;
        stack.send(queue, &second).await;
        stack.deliver_to("ProcessItemsFunctionName", true).await;
        completes(stack, &job, ROWS - 10).await;
        stack.act(&job, "redrive").await;
        completes(stack, &job, ROWS).await;
    }
}

/// Its messages to the splitter are lost; a resume sends another one, after which the splitter sends itself one.
pub async fn an_urgent_job_survives_lost_messages_of_its_split(stack: &LocalStack) {
    stack.deliver_to("SplitJobFunctionName", false).await;
    let request = json!({ "priority": Priority::High });
    let job = drop_requested(stack, "urgent", &request, "id\n1\n").await;
    stack.take_of("JobsHighQueueUrl", &job).await;
    let again = stack.take_with_sweeps("JobsHighQueueUrl").await;
    assert_eq!((&again["jobGuid"], &again["priority"]), (&json!(job), &json!("high")), "{again}");
    stack.act(&job, "pause").await;
    stack.act(&job, "resume").await;
    let resumed = stack.take_of("JobsHighQueueUrl", &job).await;
    assert_eq!(stack.job(&job).await["status"], Value::from("waiting"));
    stack.send("JobsHighQueueUrl", &resumed).await;
    stack.deliver_to("SplitJobFunctionName", true).await;
    completes(stack, &job, 1).await;
}
