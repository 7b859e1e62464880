//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, BUCKET, JOBS_TABLE, Links, SettingsGroup};

pub static FUNCTION: Function = Function {
    name: "job-status",
    purpose: "Shows jobs, lists of jobs, failed items, results and dead letters, and audits jobs.",
    triggers: &[Trigger::Http],
    settings: &[Links::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query", "dynamodb:BatchGetItem"], &[JOBS_TABLE]),
        Use::of("JobsOfOwner", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/owner-index"]),
        Use::of("Admission", &["dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the caller's requests to expensive routes."),
        Use::of("Results", &["s3:GetObject"], &[BUCKET]).parts(&["/results/*"]),
        Use::MISSING_OBJECTS,
    ],
    ..Function::DEFAULT
};
