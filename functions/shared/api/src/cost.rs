//! The cost of a job, as the API shows it.

use rowmill_core::model::cost::{PriceList, Usage, dollars, gb_seconds};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Use of AWS by a job so far, and its list price.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobCost {
    /// The list price in US dollars, without free tier and discounts.
    #[schema(minimum = 0)]
    pub usd: f64,
    /// Requests of the functions to DynamoDB, S3 and SQS together.
    pub requests: u64,
    /// DynamoDB read request units.
    #[schema(minimum = 0)]
    pub read_units: f64,
    /// DynamoDB write request units.
    #[schema(minimum = 0)]
    pub write_units: f64,
    /// S3 requests that are charged like GET.
    pub s3_reads: u64,
    /// S3 requests that are charged like PUT.
    pub s3_writes: u64,
    /// Requests to SQS.
    pub sqs_requests: u64,
    /// Invocations of Lambda functions.
    pub lambda_requests: u64,
    /// Time of Lambda functions times their memory.
    #[schema(minimum = 0)]
    pub lambda_gb_seconds: f64,
    /// The region of the price list.
    pub price_region: String,
    /// The month since when the prices of the list hold.
    pub prices_since: String,
}

impl JobCost {
    /// The cost of this usage, by the list prices of us-east-1.
    pub fn of(usage: &Usage) -> Self {
        let (prices, capacity) = (PriceList::US_EAST_1, usage.capacity());
        Self {
            usd: dollars(prices.price(usage).sum()),
            requests: [usage.dynamodb_requests, usage.s3_reads, usage.s3_writes, usage.sqs_requests]
                .into_iter()
                .fold(0, u64::saturating_add),
            read_units: capacity.read,
            write_units: capacity.write,
            s3_reads: usage.s3_reads,
            s3_writes: usage.s3_writes,
            sqs_requests: usage.sqs_requests,
            lambda_requests: usage.lambda_requests,
            lambda_gb_seconds: gb_seconds(usage.lambda_mb_ms),
            price_region: prices.region.to_owned(),
            prices_since: prices.since.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_shows_units_and_dollars() {
        // A million of each unit, a thousand GB-seconds.
        let usage = Usage {
            dynamodb_requests: 5,
            read_halves: 4_000_000,
            write_halves: 2_000_000,
            s3_reads: 2_000,
            s3_writes: 1_000,
            sqs_requests: 3_000_000,
            lambda_requests: 1_000_000,
            lambda_mb_ms: 1_024_000_000,
        };
        let cost = JobCost::of(&usage);
        assert_eq!((cost.usd, cost.requests), (2.294_133_4, 3_003_005));
        assert_eq!((cost.read_units, cost.write_units, cost.lambda_gb_seconds), (2e6, 1e6, 1000.0));
        let most = JobCost::of(&usage.zip_with(Usage::NONE, |_, _| u64::MAX));
        assert!(most.usd.is_finite() && most.requests == u64::MAX);
    }
}
