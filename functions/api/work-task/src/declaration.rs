//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_TABLE,
    JobTargets, JobTypeSettings, LANES_QUEUE, Links, SettingsGroup, TASKS_TABLE,
};

use crate::allowed::WorkerSettings;

pub static FUNCTION: Function = Function {
    name: "work-task",
    purpose: "Lends chunks to workers outside of the stack, and takes their results.",
    triggers: &[Trigger::Http],
    settings: &[JobTypeSettings::GROUP, JobTargets::GROUP, WorkerSettings::GROUP, Links::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[JOBS_TABLE])
            .why("The checkpoint of a chunk is what a worker holds; its tally counts the outcomes."),
        Use::of(
            "Tasks",
            &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
            &[TASKS_TABLE],
        ),
        Use::of("TasksDue", &["dynamodb:Query"], &[TASKS_TABLE]).parts(&["/index/due-index"]),
        Use::of("Requests", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the requests of a worker, and looks whether it is blocked."),
        Use::FILES.unseen(&[("s3:GetObject", "Bucket/inbox/*", "reading the items of a job on a file of the inbox")]),
        Use::INPUTS.unseen(&[("s3:GetObject", "InputBuckets/*", "lending the rows of an external bucket")]),
        Use::MISSING_OBJECTS.unseen(&[("s3:ListBucket", "Bucket", "finding that the file of a job is gone")]),
        Use::RESULTS
            .why("The run outputs of workers, their products by presigned requests, and chunks that are objects."),
        Use::send(&[ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ISOLATE_QUEUE, LANES_QUEUE, COMPLETIONS_QUEUE])
            .why("Chunks that no worker may process any more, the next ones of a window, and jobs that are done.")
            .unseen(&[
                ("sqs:SendMessage", "ItemsHighQueue", "sending the next chunk of a job of high priority"),
                ("sqs:SendMessage", "ItemsLowQueue", "sending the next chunk of a job of low priority"),
                ("sqs:SendMessage", "IsolateQueue", "returning an isolated item that no worker may process any more"),
                ("sqs:SendMessage", "LanesQueue", "sending the next chunk of a job that began in a lane"),
            ]),
    ],
    ..Function::DEFAULT
};
