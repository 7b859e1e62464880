//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_TABLE,
    JobTargets, JobTypeSettings, LANES_QUEUE, SettingsGroup, TASKS_TABLE,
};

use crate::allowed::WorkerSettings;

pub static FUNCTION: Function = Function {
    name: "work-task",
    purpose: "Lends chunks to workers outside of the stack, and takes their results.",
    triggers: &[Trigger::Http],
    settings: &[JobTypeSettings::GROUP, JobTargets::GROUP, WorkerSettings::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[JOBS_TABLE])
            .why("The checkpoint of a chunk is what a worker holds; its tally counts the outcomes."),
        Use::of(
            "Tasks",
            &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
            &[TASKS_TABLE],
        )
        .parts(&["", "/index/due-index"]),
        Use::of("Requests", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the requests of a worker, and looks whether it is blocked."),
        Use::FILES,
        Use::MISSING_OBJECTS,
        Use::RESULTS.why("The run outputs of workers, and chunks that are objects."),
        Use::send(&[ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ISOLATE_QUEUE, LANES_QUEUE, COMPLETIONS_QUEUE])
            .why("Chunks that no worker may process any more, the next ones of a window, and jobs that are done."),
    ],
    ..Function::DEFAULT
};
