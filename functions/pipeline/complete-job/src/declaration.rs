//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, COMPLETIONS_QUEUE, JOBS_TABLE, SettingsGroup};

use crate::limits::CompleteLimits;

pub static FUNCTION: Function = Function {
    name: "complete-job",
    purpose: "Composes the results of a job, ends it exactly once and releases its slots. Copies the results into an external bucket.",
    triggers: &[Trigger::single(COMPLETIONS_QUEUE, Figure::Is(10), "One completion may take most of an invocation.")],
    timeout: Figure::Set("CompleteTimeoutSeconds"),
    memory_megabytes: Figure::Is(256),
    settings: &[CompleteLimits::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"], &[JOBS_TABLE]),
        Use::of("Admission", &["dynamodb:UpdateItem"], &[ADMISSION_TABLE]).why("Releases the slots of the job."),
        Use::FILES,
        Use::RESULTS,
        Use::INPUTS.unseen(&[(
            "s3:GetObject",
            "InputBuckets/*",
            "copying the skipped rows of a stopped job over an external bucket",
        )]),
        Use::OUTPUTS,
        Use::MISSING_OBJECTS,
        Use::send(&[COMPLETIONS_QUEUE]).why("Long results continue in another invocation."),
    ],
    loops: "Each invocation stores how much of the results it composed or copied, so the loop ends with the results.",
    errors: Errors::Share(Advice { meanwhile: "messages come back, in the end as dead letters", todo: "its log" }),
};
