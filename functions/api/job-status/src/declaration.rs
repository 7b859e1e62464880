//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, BUCKET, JOBS_TABLE, JobTypeSettings, Links, SettingsGroup, TASKS_TABLE};

pub static FUNCTION: Function = Function {
    name: "job-status",
    purpose: "Shows jobs, lists of jobs, failed items, results, dead letters and tasks, audits jobs, and tells what holds them up.",
    triggers: &[Trigger::Http],
    settings: &[Links::GROUP, JobTypeSettings::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem"], &[JOBS_TABLE]),
        Use::of("JobsOfOwner", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/owner-index"]),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why(
                "Counts the caller's requests to expensive routes; reads the breaker of a job type and the counters of \
                  active jobs, to tell what holds a job up.",
            ),
        Use::of("Tasks", &["dynamodb:GetItem", "dynamodb:Query"], &[TASKS_TABLE])
            .why("Shows who works on a job, and whether workers ask for its type."),
        Use::of("Results", &["s3:GetObject"], &[BUCKET]).parts(&["/results/*"]),
        Use::MISSING_OBJECTS,
    ],
    ..Function::DEFAULT
};
