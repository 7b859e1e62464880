//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, COMPLETIONS_QUEUE, ISOLATE_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ITEMS_QUEUE, JOBS_QUEUE,
    JOBS_TABLE, JobTypeSettings, LANES_QUEUE, SettingsGroup,
};

use crate::limits::DeadLetterLimits;

pub static FUNCTION: Function = Function {
    name: "dead-letter",
    purpose: "Records the messages that a queue gave up on, and makes sure that their jobs end.",
    triggers: &[Trigger::DeadLetters(&[JOBS_QUEUE, ITEMS_QUEUE, LANES_QUEUE, COMPLETIONS_QUEUE])],
    timeout: Figure::Set("CompleteTimeoutSeconds"),
    memory_megabytes: Figure::Is(256),
    settings: &[DeadLetterLimits::GROUP, JobTypeSettings::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], &[JOBS_TABLE]),
        Use::of("Admission", &["dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Releases the slots of a job that complete-job could not end."),
        Use::FILES,
        Use::RESULTS,
        Use::INPUTS.unseen(&[("s3:GetObject", "InputBuckets/*", "giving up a chunk of a job over an external bucket")]),
        Use::MISSING_OBJECTS,
        Use::send(&[ITEMS_QUEUE, ITEMS_HIGH_QUEUE, ITEMS_LOW_QUEUE, ISOLATE_QUEUE, LANES_QUEUE, COMPLETIONS_QUEUE]),
    ],
    loops: "A dead chunk goes back to process-items, which may need many invocations for it. It is isolated once, and \
            given up if it becomes a dead letter again, so the loop ends with the chunk.",
    errors: Errors::Share(Advice { meanwhile: "dead letters come back", todo: "its log" }),
};
