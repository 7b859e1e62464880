//! The function as data.

use create_job::limits::CreateLimits;
use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, BucketSettings, INBOX_QUEUE, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, JobTargets,
    JobTypeSettings, OwnerPrioritySettings, RECORDS_TABLE, SettingsGroup, UPLOADS_TABLE,
};

use crate::limits::{FileLimits, InboxSettings};

pub static FUNCTION: Function = Function {
    name: "receive-file",
    purpose: "Turns a file dropped under inbox/ into an upload and a job.",
    triggers: &[Trigger::single(INBOX_QUEUE, Figure::Is(2), "")],
    timeout: Figure::Is(60),
    settings: &[
        FileLimits::GROUP,
        InboxSettings::GROUP,
        CreateLimits::GROUP,
        OwnerPrioritySettings::GROUP,
        JobTypeSettings::GROUP,
        JobTargets::GROUP,
        BucketSettings::GROUP,
    ],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:PutItem"], &[JOBS_TABLE]),
        Use::of(
            "Admission",
            &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
            &[ADMISSION_TABLE],
        ),
        Use::of("Uploads", &["dynamodb:GetItem", "dynamodb:PutItem"], &[UPLOADS_TABLE]),
        Use::of("Datasets", &["dynamodb:GetItem"], &[RECORDS_TABLE])
            .why("How long the dataset of an import keeps its records."),
        Use::of("Files", &["s3:GetObject"], &[BUCKET]).parts(&["/inbox/*"]),
        Use::of("Items", &["s3:PutObject"], &[BUCKET])
            .parts(&["/results/*/inputs/*"])
            .why("The list of the file, for a target that takes files."),
        Use::of("Problems", &["s3:PutObject"], &[BUCKET]).parts(&["/inbox-problems/*"]),
        Use::MISSING_OBJECTS,
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]),
        Use::of("Postpone", &["sqs:ChangeMessageVisibility"], &[INBOX_QUEUE])
            .why("A message refused by a ceiling comes back when a slot is likely to be free."),
    ],
    errors: Errors::Any(Advice { meanwhile: "messages come back", todo: "the log of `receive-file`" }),
    ..Function::DEFAULT
};
