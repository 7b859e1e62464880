//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{BUCKET, JOBS_TABLE, Recovery, SettingsGroup};

use crate::erase::TIMEOUT;

pub static FUNCTION: Function = Function {
    name: "erase-job",
    purpose: "Erases the rows and objects of jobs that are deleted, or kept for a short time.",
    triggers: &[Trigger::Schedule("rate(1 minute)")],
    timeout: Figure::Is(TIMEOUT.as_secs() as u32),
    settings: &[Recovery::GROUP],
    uses: &[
        Use::of(
            "Jobs",
            &[
                "dynamodb:GetItem",
                "dynamodb:UpdateItem",
                "dynamodb:Query",
                "dynamodb:DeleteItem",
                "dynamodb:BatchWriteItem",
            ],
            &[JOBS_TABLE],
        )
        .why("It claims a deleted job, or deletes one that has expired, and erases its rows."),
        Use::of("JobsDue", &["dynamodb:Query"], &[JOBS_TABLE]).parts(&["/index/wake-index"]),
        Use::of("Results", &["s3:DeleteObject"], &[BUCKET]).parts(&["/results/*"]),
        Use::of("ListResults", &["s3:ListBucket"], &[BUCKET])
            .listed("results/*")
            .why("It erases all objects below the name of a job."),
    ],
    errors: Errors::Any(Advice { meanwhile: "nobody sees the job, and it is tried again", todo: "its log" }),
    ..Function::DEFAULT
};
