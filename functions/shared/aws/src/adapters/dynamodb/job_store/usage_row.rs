//! The usage in the rows of a job: eight numbers. Their names are short, because a tally row with all marks must cost
//! one write unit.

use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_core::model::cost::Usage;
use serde::{Deserialize, Serialize};

use crate::adapters::dynamodb::attributes::number;

/// The part of an update expression behind `ADD` that adds a usage, with the values of [`usage_values`].
macro_rules! add_usage {
    () => {
        "#ud :ud, #ur :ur, #uw :uw, #ug :ug, #up :up, #uq :uq, #ul :ul, #um :um"
    };
}
pub(super) use add_usage;

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct UsageRow {
    #[serde(default, skip_serializing_if = "is_zero")]
    ud: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    ur: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    uw: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    ug: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    up: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    uq: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    ul: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    um: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<Usage> for UsageRow {
    fn from(usage: Usage) -> Self {
        Self {
            ud: usage.dynamodb_requests,
            ur: usage.read_halves,
            uw: usage.write_halves,
            ug: usage.s3_reads,
            up: usage.s3_writes,
            uq: usage.sqs_requests,
            ul: usage.lambda_requests,
            um: usage.lambda_mb_ms,
        }
    }
}

impl From<UsageRow> for Usage {
    fn from(row: UsageRow) -> Self {
        Self {
            dynamodb_requests: row.ud,
            read_halves: row.ur,
            write_halves: row.uw,
            s3_reads: row.ug,
            s3_writes: row.up,
            sqs_requests: row.uq,
            lambda_requests: row.ul,
            lambda_mb_ms: row.um,
        }
    }
}

/// The values of the placeholders in [`add_usage`].
pub fn usage_values(usage: Usage) -> [(&'static str, AttributeValue); 8] {
    let UsageRow { ud, ur, uw, ug, up, uq, ul, um } = usage.into();
    [(":ud", ud), (":ur", ur), (":uw", uw), (":ug", ug), (":up", up), (":uq", uq), (":ul", ul), (":um", um)]
        .map(|(placeholder, units)| (placeholder, number(units)))
}
