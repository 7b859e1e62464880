//! The function as data.

use rowmill_settings::declaration::{Advice, Errors, Figure, Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, FETCHES_QUEUE, FetchSettings, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, SettingsGroup,
    UPLOADS_TABLE,
};
use upload::limits::UploadLimits;

use crate::fetch::TIME_LIMIT;

pub static FUNCTION: Function = Function {
    name: "fetch-file",
    purpose: "Fetches files from external servers and buckets.",
    triggers: &[Trigger::single(FETCHES_QUEUE, Figure::Is(5), "Each fetches four parts of one file at a time.")],
    timeout: Figure::Is(TIME_LIMIT.as_secs() as u32),
    memory_megabytes: Figure::Is(512),
    settings: &[UploadLimits::GROUP, FetchSettings::GROUP],
    uses: &[
        Use::of("Uploads", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[UPLOADS_TABLE]),
        Use::of("Admission", &["dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("The outstanding uploads of the owner, of which it is one."),
        Use::of(
            "Files",
            &["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
            &[BUCKET],
        )
        .parts(&["/uploads/*"]),
        Use::INPUTS,
        Use::MISSING_OBJECTS.unseen(&[(
            "s3:ListBucket",
            "Bucket",
            "completing an upload that its owner has aborted meanwhile",
        )]),
        Use::send(&[FETCHES_QUEUE, JOBS_QUEUE, JOBS_HIGH_QUEUE])
            .why("A long file continues in another invocation. Jobs that wait for the file start.")
            .unseen(&[("sqs:SendMessage", "FetchesQueue", "fetching a file that takes several invocations")]),
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:Query"], &[JOBS_TABLE]).why("The jobs that wait for the file."),
        Use::of("Postpone", &["sqs:ChangeMessageVisibility"], &[FETCHES_QUEUE])
            .why("A file comes back after a crash, or when its server is likely to answer."),
    ],
    loops: "A long file takes more. Each invocation stores parts and the next continues behind them, so the loop ends \
            with the file.",
    errors: Errors::Share(Advice {
        meanwhile: "messages come back, and a file is given up in the end",
        todo: "its log",
    }),
};
