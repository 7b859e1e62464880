//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, BucketSettings, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, JobTargets, JobTypeSettings,
    OwnerPrioritySettings, RECORDS_TABLE, SettingsGroup, UPLOADS_TABLE,
};

use crate::limits::CreateLimits;

pub static FUNCTION: Function = Function {
    name: "create-job",
    purpose: "Admits a job under the ceilings, creates it and sends its first message. Shows the first rows of a file.",
    triggers: &[Trigger::Http],
    settings: &[
        CreateLimits::GROUP,
        OwnerPrioritySettings::GROUP,
        JobTypeSettings::GROUP,
        JobTargets::GROUP,
        BucketSettings::GROUP,
    ],
    uses: &[
        Use::of(
            "Jobs",
            &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"],
            &[JOBS_TABLE],
        ),
        Use::of(
            "Admission",
            &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
            &[ADMISSION_TABLE],
        ),
        Use::of("Uploads", &["dynamodb:GetItem"], &[UPLOADS_TABLE]),
        Use::FILES,
        Use::of("Datasets", &["dynamodb:GetItem", "dynamodb:DeleteItem"], &[RECORDS_TABLE])
            .why("Whether a dataset exists; takes a deleted one off the list."),
        Use::of("Results", &["s3:GetObject"], &[BUCKET])
            .parts(&["/results/*"])
            .why("A result of a job as the input of a new one."),
        Use::of("Items", &["s3:PutObject"], &[BUCKET])
            .parts(&["/results/*/inputs/*"])
            .why("The items of a job without a file, and the list of the files of a job over many."),
        Use::MISSING_OBJECTS,
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]),
    ],
    ..Function::DEFAULT
};
