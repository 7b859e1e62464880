//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{
    ADMISSION_TABLE, JOBS_HIGH_QUEUE, JOBS_QUEUE, JOBS_TABLE, JobTypeSettings, SettingsGroup, UPLOADS_TABLE,
};

use crate::limits::RedriveLimits;

pub static FUNCTION: Function = Function {
    name: "redrive-job",
    purpose: "Starts the next attempt of an ended job over its failed items.",
    triggers: &[Trigger::Http],
    settings: &[RedriveLimits::GROUP, JobTypeSettings::GROUP],
    uses: &[
        Use::of("Jobs", &["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"], &[JOBS_TABLE]),
        Use::of("Admission", &["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"], &[ADMISSION_TABLE]),
        Use::of("Uploads", &["dynamodb:GetItem"], &[UPLOADS_TABLE]),
        Use::FILES,
        Use::RESULTS.why("The failed rows that a corrected file is matched with, and the rows that replace them."),
        Use::MISSING_OBJECTS,
        Use::send(&[JOBS_QUEUE, JOBS_HIGH_QUEUE]),
    ],
    ..Function::DEFAULT
};
