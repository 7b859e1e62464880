use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementError, BatchStatementErrorCodeEnum as Code, BatchStatementRequest,
    ReturnValuesOnConditionCheckFailure,
};
use rowmill_core::model::decimal::Decimal;
use rowmill_core::model::records::{Dataset, DatasetRecord, KEY_MAX_BYTES};
use rowmill_core::ports::{BoxError, PortError};
use serde_json::{Map, Number, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::attributes::text;

pub(super) const DOING: &str = "writing records";

const ITEM_MAX_BYTES: usize = 400 * 1024;

/// The number of significant digits that DynamoDB keeps.
const DIGITS_MAX: usize = 38;

/// The partition of a record: `<dataset>#<bucket>`. The dataset is named by `dataset_of`; the bucket is XXH3 (64 bits,
/// no seed) of the key's bytes modulo the number of the dataset's partitions. This is part of the stored format.
pub fn bucket_of(dataset: &Dataset, key: &str) -> String {
    bucket_name(&dataset.name, xxh3_64(key.as_bytes()) % u64::from(dataset.partitions.max(1)))
}

/// The name of a partition of a dataset.
pub fn bucket_name(dataset: &str, number: u64) -> String {
    format!("{dataset}#{number}")
}

/// The two statements of an upsert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Takes effect if the key has no record.
    Insert,
    /// Takes effect if the record has an earlier version.
    Update,
}

/// The texts of the two statements for a table.
#[derive(Clone, Debug)]
pub struct Statements {
    insert: String,
    update: String,
}

impl Statements {
    pub fn of(table: &str) -> Self {
        Self {
            insert: format!("INSERT INTO \"{table}\" VALUE {{'bucket': ?, 'key': ?, 'version': ?, 'fields': ?}}"),
            update: format!(
                "UPDATE \"{table}\" SET \"version\" = ? SET \"fields\" = ? \
                 WHERE \"bucket\" = ? AND \"key\" = ? AND \"version\" < ?"
            ),
        }
    }

    /// The statement of this kind for a record. Unless the record is known to exist, a failed update returns the record
    /// that it failed on: this distinguishes a later version from a missing record.
    ///
    /// # Errors
    /// `Invalid`: a retry does not help.
    pub fn request(&self, kind: Kind, record: &Record, exists: bool) -> Result<BatchStatementRequest, PortError> {
        let Record { bucket, key, version, fields, .. } = record;
        let (bucket, key, version, fields) = (bucket.clone(), key.clone(), version.clone(), fields.clone());
        let request = BatchStatementRequest::builder();
        let request = match kind {
            Kind::Insert => request.statement(&self.insert).set_parameters(Some(vec![bucket, key, version, fields])),
            Kind::Update => {
                let parameters = vec![version.clone(), fields, bucket, key, version];
                let request = request.statement(&self.update).set_parameters(Some(parameters));
                let old = ReturnValuesOnConditionCheckFailure::AllOld;
                if exists { request } else { request.return_values_on_condition_check_failure(old) }
            }
        };
        request.build().map_err(|error| PortError::invalid(DOING, error))
    }
}

/// A record as the table stores it.
#[derive(Clone, Debug)]
pub struct Record {
    bucket: AttributeValue,
    key: AttributeValue,
    version: AttributeValue,
    fields: AttributeValue,
    /// Its approximate size in bytes.
    pub bytes: usize,
}

impl Record {
    /// The record that an upsert writes.
    ///
    /// # Errors
    /// `Invalid` if its key is empty or too long, a number has too many digits for DynamoDB, or it is over 400 KB.
    pub fn of(dataset: &Dataset, upsert: &DatasetRecord) -> Result<Self, PortError> {
        if upsert.key.is_empty() || upsert.key.len() > KEY_MAX_BYTES {
            let error = format!("the key has {} bytes; it must have 1 to {KEY_MAX_BYTES}", upsert.key.len());
            return Err(PortError::invalid(DOING, error));
        }
        let (fields, field_bytes) = map(&upsert.fields).map_err(|error| PortError::invalid(DOING, error))?;
        let (bucket, version) = (bucket_of(dataset, &upsert.key), upsert.version.to_string());
        let bytes = bucket.len() + upsert.key.len() + version.len() + field_bytes + "bucketkeyversionfields".len();
        if bytes > ITEM_MAX_BYTES {
            let error = format!("the record takes {bytes} bytes, more than the {ITEM_MAX_BYTES} it may have");
            return Err(PortError::invalid(DOING, error));
        }
        Ok(Self { bucket: text(bucket), key: text(&upsert.key), version: text(version), fields, bytes })
    }
}

/// The meaning of the answer to one statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It took effect.
    Done,
    /// An insert found a record with the key.
    Exists,
    /// An update found this version or a later one.
    Later,
    /// An update found no earlier version. It is unknown whether it found any.
    NotEarlier,
    /// Refused temporarily.
    Passing,
    /// Refused because of the record.
    Invalid,
    /// Refused because there is no such table.
    Unavailable,
    /// Refused because of a missing permission.
    Denied,
}

pub fn answer(error: Option<&BatchStatementError>) -> Answer {
    let Some(error) = error else { return Answer::Done };
    match error.code() {
        Some(Code::DuplicateItem) => Answer::Exists,
        Some(Code::ConditionalCheckFailed) if error.item().is_some_and(|item| !item.is_empty()) => Answer::Later,
        Some(Code::ConditionalCheckFailed) => Answer::NotEarlier,
        Some(Code::ValidationError | Code::ItemCollectionSizeLimitExceeded) => Answer::Invalid,
        Some(Code::AccessDenied) => Answer::Denied,
        Some(Code::ResourceNotFound) => Answer::Unavailable,
        // InternalServerError, ProvisionedThroughputExceeded, RequestLimitExceeded, ThrottlingError,
        // TransactionConflict, and codes that AWS may add.
        _ => Answer::Passing,
    }
}

/// A value and its size in bytes as DynamoDB counts it: 3 for a list or map, plus 1 for each element.
fn value(value: &Value) -> Result<(AttributeValue, usize), BoxError> {
    Ok(match value {
        Value::Null => (AttributeValue::Null(true), 1),
        Value::Bool(value) => (AttributeValue::Bool(*value), 1),
        Value::String(text) => (AttributeValue::S(text.clone()), text.len()),
        Value::Number(number) => {
            let digits = decimal(number)?;
            let bytes = digits.len() / 2 + 2;
            (AttributeValue::N(digits), bytes)
        }
        Value::Array(values) => {
            let mut bytes = 3;
            let mut list = Vec::with_capacity(values.len());
            for element in values {
                let (element, size) = self::value(element)?;
                bytes += size + 1;
                list.push(element);
            }
            (AttributeValue::L(list), bytes)
        }
        Value::Object(fields) => map(fields)?,
    })
}

fn map(fields: &Map<String, Value>) -> Result<(AttributeValue, usize), BoxError> {
    let mut bytes = 3;
    let mut map = HashMap::with_capacity(fields.len());
    for (name, field) in fields {
        let (field, size) = value(field)?;
        bytes += name.len() + size + 1;
        map.insert(name.clone(), field);
    }
    Ok((AttributeValue::M(map), bytes))
}

/// A number as it was written, if DynamoDB can store it with all its digits.
fn decimal(number: &Number) -> Result<String, BoxError> {
    let written = number.to_string();
    let beyond = || format!("the number {written} is beyond what the records table can hold");
    let decimal = Decimal::of(number).ok_or_else(beyond)?;
    if decimal.digits.is_empty() {
        return Ok("0".to_owned());
    }
    if decimal.digits.len() > DIGITS_MAX {
        return Err(format!("the number {written} has more than {DIGITS_MAX} significant digits").into());
    }
    // DynamoDB accepts 1E-130 to 9.9…E+125.
    if !decimal.first_power().is_some_and(|power| (-130..=125).contains(&power)) {
        return Err(beyond().into());
    }
    // serde_json writes every exponent with its sign.
    Ok(written.replace('+', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_bucket_of_a_key_never_changes() {
        // Stored records are found by these: a change here loses them.
        let of = |partitions, key: &str| bucket_of(&dataset("unicode", partitions), key);
        for (partitions, expected) in EXPECTED_BUCKETS {
            assert_eq!(["", "U+0041", "a", "ключ"].map(|key| of(partitions, key)), expected);
        }
        for partitions in [16, 256] {
            let used: std::collections::BTreeSet<_> = (0..10_000).map(|n| of(partitions, &n.to_string())).collect();
            assert_eq!(used.len(), partitions as usize, "ten thousand keys are in all buckets");
        }
    }

    const EXPECTED_BUCKETS: [(u32, [&str; 4]); 2] = [
        (16, ["unicode#2", "unicode#3", "unicode#15", "unicode#14"]),
        (256, ["unicode#194", "unicode#83", "unicode#31", "unicode#222"]),
    ];

    fn dataset(name: &str, partitions: u32) -> Dataset {
        Dataset { name: name.to_owned(), partitions }
    }

    #[test]
    fn numbers_keep_their_digits_or_are_rejected() {
        let number = |text: &str| decimal(&serde_json::from_str::<Number>(text).unwrap());
        assert_eq!(number("18446744073709551615").unwrap(), "18446744073709551615");
        assert_eq!(number("-9223372036854775808").unwrap(), "-9223372036854775808");
        assert_eq!(number("0.1").unwrap(), "0.1");
        assert_eq!(number("0.0").unwrap(), "0");
        assert_eq!(number("1e125").unwrap(), "1e125");
        assert_eq!(number("-12.5E+3").unwrap(), "-12.5e3");
        assert!(number("123456789012345678901234567890123456789").is_err());
        assert!(number("1e99999999999999999999").is_err());
        assert!(number("1e126").is_err());
        assert!(number("1e-130").is_ok());
        assert!(number("1e-131").is_err());
    }

    #[test]
    fn a_record_that_is_too_large_is_rejected_before_it_is_sent() {
        use rowmill_core::model::ids::JobGuid;
        use rowmill_core::model::records::{RecordVersion, Writer};
        let by = Writer { job_created_ms: 1, job_guid: JobGuid(uuid::Uuid::nil()) };
        let version = RecordVersion { by, row: 1 };
        let of = |text: String| {
            let fields = json!({ "text": text }).as_object().cloned().unwrap();
            Record::of(&dataset("d", 256), &DatasetRecord { key: "k".into(), version, fields })
        };
        assert!(of("x".repeat(400 * 1024 - 200)).is_ok());
        assert!(matches!(of("x".repeat(400 * 1024)), Err(PortError::Invalid { .. })));
    }

    #[test]
    fn every_error_code_of_dynamodb_is_mapped() {
        let of = |code| answer(Some(&BatchStatementError::builder().code(code).build()));
        assert_eq!(answer(None), Answer::Done);
        assert_eq!(of(Code::DuplicateItem), Answer::Exists);
        assert_eq!(of(Code::ConditionalCheckFailed), Answer::NotEarlier);
        assert_eq!(of(Code::ValidationError), Answer::Invalid);
        assert_eq!(of(Code::ItemCollectionSizeLimitExceeded), Answer::Invalid);
        assert_eq!(of(Code::AccessDenied), Answer::Denied);
        assert_eq!(of(Code::ResourceNotFound), Answer::Unavailable);
        for passing in [
            Code::InternalServerError,
            Code::ProvisionedThroughputExceeded,
            Code::RequestLimitExceeded,
            Code::ThrottlingError,
            Code::TransactionConflict,
        ] {
            assert_eq!(of(passing), Answer::Passing);
        }
        let found = BatchStatementError::builder().code(Code::ConditionalCheckFailed).item("key", text("k")).build();
        assert_eq!(answer(Some(&found)), Answer::Later);
    }
}
