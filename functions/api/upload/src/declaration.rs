//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, BUCKET, BucketSettings, FETCHES_QUEUE, FetchSettings, SettingsGroup, UPLOADS_TABLE,
};

use crate::limits::UploadLimits;

pub static FUNCTION: Function = Function {
    name: "upload",
    purpose: "Takes files: in the request body, by presigned PUT, in parts, or by a place to fetch from. Signs parts again, and deletes uploads.",
    triggers: &[Trigger::Http],
    settings: &[UploadLimits::GROUP, FetchSettings::GROUP, BucketSettings::GROUP],
    uses: &[
        Use::of(
            "Uploads",
            &["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"],
            &[UPLOADS_TABLE],
        ),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE])
            .why("Counts the caller's requests and outstanding uploads, and looks whether the caller is blocked."),
        Use::of(
            "Files",
            &[
                "s3:PutObject",
                "s3:GetObject",
                "s3:DeleteObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            &[BUCKET],
        )
        .parts(&["/uploads/*"])
        .why("Creating, writing and completing a multipart upload are all PutObject, HEAD is GetObject."),
        Use::of("Dropped", &["s3:GetObject", "s3:DeleteObject"], &[BUCKET])
            .parts(&["/inbox/*"])
            .why("A file that was dropped into the bucket is an upload too."),
        Use::MISSING_OBJECTS,
        Use::send(&[FETCHES_QUEUE]),
    ],
    ..Function::DEFAULT
};
