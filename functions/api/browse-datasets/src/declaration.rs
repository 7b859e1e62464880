//! The function as data.

use rowmill_settings::declaration::{Function, Trigger, Use};
use rowmill_settings::{ADMISSION_TABLE, RECORDS_TABLE};

pub static FUNCTION: Function = Function {
    name: "browse-datasets",
    purpose: "Lists datasets, and shows their records.",
    triggers: &[Trigger::Http],
    uses: &[
        Use::of("Records", &["dynamodb:GetItem", "dynamodb:Query"], &[RECORDS_TABLE]),
        Use::of("Requests", &["dynamodb:UpdateItem"], &[ADMISSION_TABLE]).why("Counts the caller's requests."),
    ],
    ..Function::DEFAULT
};
