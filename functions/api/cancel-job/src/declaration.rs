//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, Deadlines, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, JobRetention, OwnerPrioritySettings, Recovery,
    SettingsGroup,
};

pub static FUNCTION: Function = Function {
    name: "cancel-job",
    purpose: "Stops, pauses, resumes, retunes and deletes a job for its owner.",
    triggers: &[Trigger::Http],
    settings: &[JobRetention::GROUP, Deadlines::GROUP, OwnerPrioritySettings::GROUP, Recovery::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"], &[JOBS_TABLE]),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the caller's requests, looks whether the caller is blocked, and has the slots of the jobs."),
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]).why("A resumed job continues with split-job."),
    ],
    ..Function::DEFAULT
};
