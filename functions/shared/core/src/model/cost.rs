//! The use of AWS by a job, and the price list.
//!
//! Functions and command share them: the functions store the [`Usage`] of a job, its answers and the benchmark apply
//! the [`PriceList`] to it.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Use of AWS, in whole units, so that sums are exact.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Requests to DynamoDB. They are free: the capacity is charged.
    pub dynamodb_requests: u64,
    /// DynamoDB read request units, in halves.
    pub read_halves: u64,
    /// DynamoDB write request units, in halves.
    pub write_halves: u64,
    /// S3 requests that are charged like GET.
    pub s3_reads: u64,
    /// S3 requests that are charged like PUT: also POST, COPY and LIST.
    pub s3_writes: u64,
    pub sqs_requests: u64,
    pub lambda_requests: u64,
    /// Time of Lambda functions, in milliseconds of a megabyte.
    pub lambda_mb_ms: u64,
}

impl Usage {
    pub const NONE: Self = Self {
        dynamodb_requests: 0,
        read_halves: 0,
        write_halves: 0,
        s3_reads: 0,
        s3_writes: 0,
        sqs_requests: 0,
        lambda_requests: 0,
        lambda_mb_ms: 0,
    };

    /// So many conditional writes of rows up to 1 KiB, each a request of its own.
    pub const fn of_row_writes(writes: u64) -> Self {
        Self { dynamodb_requests: writes, write_halves: 2 * writes, ..Self::NONE }
    }

    /// One transaction that writes so many rows up to 1 KiB: each costs twice.
    pub const fn of_transaction(rows: u64) -> Self {
        Self { dynamodb_requests: 1, write_halves: 4 * rows, ..Self::NONE }
    }

    /// The usage with so many requests to SQS more.
    #[must_use]
    pub const fn with_sends(self, requests: u64) -> Self {
        Self { sqs_requests: self.sqs_requests + requests, ..self }
    }

    /// Its capacity of DynamoDB.
    pub fn capacity(&self) -> Capacity {
        Capacity { read: units(self.read_halves), write: units(self.write_halves) }
    }

    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Both of each unit, combined.
    #[must_use]
    pub fn zip_with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            dynamodb_requests: combine(self.dynamodb_requests, other.dynamodb_requests),
            read_halves: combine(self.read_halves, other.read_halves),
            write_halves: combine(self.write_halves, other.write_halves),
            s3_reads: combine(self.s3_reads, other.s3_reads),
            s3_writes: combine(self.s3_writes, other.s3_writes),
            sqs_requests: combine(self.sqs_requests, other.sqs_requests),
            lambda_requests: combine(self.lambda_requests, other.lambda_requests),
            lambda_mb_ms: combine(self.lambda_mb_ms, other.lambda_mb_ms),
        }
    }

    /// The rest of it without `other`; nothing below zero.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_sub)
    }

    #[must_use]
    pub fn times(self, times: u64) -> Self {
        self.zip_with(Self::NONE, |one, _| one.saturating_mul(times))
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.zip_with(other, u64::saturating_add)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Capacity that DynamoDB charged, in request units. Half units are exact.
#[derive(Clone, Copy, Default, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Capacity {
    /// Read units.
    pub read: f64,
    /// Write units.
    pub write: f64,
}

/// List prices of AWS in one region, in picodollars (10⁻¹² dollars), without free tier and discounts. All of them are
/// whole numbers then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriceList {
    pub region: &'static str,
    /// Since when AWS has published the youngest of these prices.
    pub since: &'static str,
    /// A DynamoDB read request unit, on demand.
    pub read_unit: u64,
    /// A DynamoDB write request unit, on demand.
    pub write_unit: u64,
    /// An S3 GET of the standard class.
    pub s3_read: u64,
    /// An S3 PUT, POST, COPY or LIST of the standard class.
    pub s3_write: u64,
    /// A request to a standard SQS queue.
    pub sqs_request: u64,
    /// An invocation of a Lambda function.
    pub lambda_request: u64,
    /// A GB-second of a Lambda function on arm64.
    pub lambda_gb_second: u64,
}

impl PriceList {
    /// The only list: another region differs by some percent. The prices may change. They stand on these pages:
    ///
    /// - DynamoDB: `aws.amazon.com/dynamodb/pricing/on-demand`
    /// - S3: `aws.amazon.com/s3/pricing`
    /// - SQS: `aws.amazon.com/sqs/pricing`
    /// - Lambda: `aws.amazon.com/lambda/pricing`
    pub const US_EAST_1: Self = Self {
        region: "us-east-1",
        since: "2024-11",
        read_unit: 125_000,
        write_unit: 625_000,
        s3_read: 400_000,
        s3_write: 5_000_000,
        sqs_request: 400_000,
        lambda_request: 200_000,
        lambda_gb_second: 13_333_400,
    };

    pub fn price(&self, usage: &Usage) -> Price {
        let times = |units: u64, price: u64| u128::from(units) * u128::from(price);
        let halves = |halves, price| times(halves, price) / 2;
        Price {
            dynamodb: halves(usage.read_halves, self.read_unit) + halves(usage.write_halves, self.write_unit),
            s3: times(usage.s3_reads, self.s3_read) + times(usage.s3_writes, self.s3_write),
            sqs: times(usage.sqs_requests, self.sqs_request),
            lambda: times(usage.lambda_requests, self.lambda_request)
                + times(usage.lambda_mb_ms, self.lambda_gb_second) / MB_MS_OF_GB_SECOND,
        }
    }
}

/// Milliseconds of a megabyte in a GB-second.
const MB_MS_OF_GB_SECOND: u128 = 1024 * 1000;

/// The price of a usage, by service, in picodollars.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Price {
    /// DynamoDB request units.
    pub dynamodb: u128,
    /// S3 requests.
    pub s3: u128,
    /// SQS requests.
    pub sqs: u128,
    /// Lambda requests and time.
    pub lambda: u128,
}

impl Price {
    pub const fn sum(&self) -> u128 {
        self.dynamodb + self.s3 + self.sqs + self.lambda
    }
}

/// Picodollars as dollars, rounded to a billionth.
pub fn dollars(picodollars: u128) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "2^53 billionths are nine million dollars")]
    let billionths = ((picodollars + 500) / 1000) as f64;
    billionths / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "no job uses 2^53 units")]
fn units(halves: u64) -> f64 {
    halves as f64 / 2.0
}

/// GB-seconds, rounded to a thousandth.
#[expect(clippy::cast_precision_loss, reason = "no job uses 2^53 thousandths")]
pub fn gb_seconds(mb_ms: u64) -> f64 {
    (mb_ms.saturating_add(512) / 1024) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million of each unit, a thousand GB-seconds.
    const MUCH: Usage = Usage {
        dynamodb_requests: 5,
        read_halves: 4_000_000,
        write_halves: 2_000_000,
        s3_reads: 2_000,
        s3_writes: 1_000,
        sqs_requests: 3_000_000,
        lambda_requests: 1_000_000,
        lambda_mb_ms: 1_024_000_000,
    };

    #[test]
    fn the_price_list_is_applied_by_service() {
        let price = PriceList::US_EAST_1.price(&MUCH);
        let microdollars = [price.dynamodb, price.s3, price.sqs, price.lambda].map(|price| price / 1_000_000);
        assert_eq!(microdollars, [250_000 + 625_000, 800 + 5_000, 1_200_000, 200_000 + 13_333]);
        assert_eq!(dollars(price.sum()), 2.294_133_4);
    }

    #[test]
    fn usages_add_up() {
        let one = Usage::of_row_writes(1).with_sends(1);
        assert_eq!(one + one, one.times(2));
        assert_eq!((one + MUCH).without(MUCH), one);
        assert_eq!(one.without(MUCH), Usage::NONE);
        assert!(!one.is_none() && Usage::default().is_none());
        assert_eq!(Usage::of_transaction(3), Usage { dynamodb_requests: 1, write_halves: 12, ..Usage::NONE });
    }
}
