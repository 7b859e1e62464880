//! The estimate of a job, before it is created.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::cost::JobCost;

/// What a job would cost and take.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EstimateView {
    /// How many items the job would have, as far as its size and its first rows tell. Null if they do not: for a
    /// dataset, a workbook, a Parquet file and objects that are not listed yet. Then nothing else is known either.
    pub items: Option<u64>,
    /// Whether `items` is certain: all of the input was looked at.
    pub items_final: bool,
    /// How many chunks it would have.
    pub chunks: Option<u64>,
    /// What it would use of AWS, if no item fails and nothing is tried again, with its list price.
    pub cost: Option<JobCost>,
    /// How long the job would take at least, in seconds, if all workers were free for it.
    #[schema(minimum = 0)]
    pub seconds_at_least: Option<f64>,
}
