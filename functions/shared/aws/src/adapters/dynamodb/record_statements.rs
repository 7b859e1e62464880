use std::collections::HashMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementError, BatchStatementErrorCodeEnum as Code, BatchStatementRequest,
    ReturnValuesOnConditionCheckFailure,
};
use rowmill_core::model::decimal::Decimal;
use rowmill_core::model::records::{Dataset, DatasetRecord, KEY_MAX_BYTES};
use rowmill_core::model::stored_record::{Before, History};
use rowmill_core::ports::{BoxError, PortError, Replacement};
use serde_json::{Map, Number, Value};
use xxhash_rust::xxh3::xxh3_64;

use super::attributes::{Item, number, text};

pub(super) const DOING: &str = "writing records";

/// The attribute with the history of a record, apart from the fields of the record before.
pub(super) const HISTORY: &str = "history";

/// The attribute with the fields of the record before, or null. They have an attribute of their own because DynamoDB
/// limits the depth of one.
pub(super) const BEFORE: &str = "before";

/// Where the fields of the record before stand in a [`History`] as JSON.
pub(super) const BEFORE_RECORD: &str = "/before/record";

/// The attribute with the time when a record expires, in seconds since 1970: DynamoDB removes it later.
const EXPIRES_AT: &str = "expiresAt";

pub(super) const ITEM_MAX_BYTES: usize = 400 * 1024;

/// The most that [`HISTORY`] takes, with the texts of two versions and the names of ten jobs, and the revision behind the
/// version. It is always counted: so no undo can make a record too large.
const HISTORY_MAX_BYTES: usize = 1024;

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

/// The statements that write a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Takes effect if the key has no record.
    Insert,
    /// Takes effect if the record has an earlier version. It keeps no history.
    Update,
    /// Takes effect if the record has the revision that was seen.
    Replace,
    /// Removes the record if it has the revision that was seen.
    Remove,
}

/// The texts of the statements for a table.
#[derive(Clone, Debug)]
pub struct Statements {
    /// For records that stay, and for those that expire.
    writes: [Writes; 2],
    remove: String,
}

#[derive(Clone, Debug)]
struct Writes {
    insert: String,
    insert_first: String,
    update: String,
    replace: String,
}

impl Writes {
    fn of(table: &str, expire: bool) -> Self {
        let (expires, set_expires) = match expire {
            true => (format!(", '{EXPIRES_AT}': ?"), format!(" SET \"{EXPIRES_AT}\" = ?")),
            false => Default::default(),
        };
        let insert =
            format!("INSERT INTO \"{table}\" VALUE {{'bucket': ?, 'key': ?, 'version': ?, 'fields': ?{expires}");
        let update = format!("UPDATE \"{table}\" SET \"version\" = ? SET \"fields\" = ?{set_expires}");
        let place = "WHERE \"bucket\" = ? AND \"key\" = ? AND \"version\"";
        Self {
            insert_first: format!("{insert}, '{HISTORY}': ?, '{BEFORE}': ?}}"),
            insert: format!("{insert}}}"),
            replace: format!("{update} SET \"{HISTORY}\" = ? SET \"{BEFORE}\" = ? {place} = ?"),
            update: format!("{update} SET \"{BEFORE}\" = ? {place} < ?"),
        }
    }
}

impl Statements {
    pub fn of(table: &str) -> Self {
        Self {
            writes: [false, true].map(|expire| Writes::of(table, expire)),
            remove: format!("DELETE FROM \"{table}\" WHERE \"bucket\" = ? AND \"key\" = ? AND \"version\" = ?"),
        }
    }

    /// The statement of this kind for a record. A failed update returns the record that it failed on: this distinguishes a
    /// later version from a missing record.
    ///
    /// # Errors
    /// `Invalid`: a retry does not help.
    pub fn request(&self, kind: Kind, record: &Record) -> Result<BatchStatementRequest, PortError> {
        let Record { bucket, key, version, fields, expires, history, seen, .. } = record.clone();
        let Writes { insert, insert_first, update, replace } = &self.writes[usize::from(expires.is_some())];
        let request = BatchStatementRequest::builder();
        let request = match kind {
            Kind::Insert => {
                let statement = if history.is_some() { insert_first } else { insert };
                let parameters = [bucket, key, version, fields].into_iter().chain(expires);
                let parameters = parameters.chain(history.into_iter().flatten()).collect();
                request.statement(statement).set_parameters(Some(parameters))
            }
            Kind::Replace => {
                let parameters = [version, fields].into_iter().chain(expires).chain(history.into_iter().flatten());
                let parameters = parameters.chain([bucket, key]).chain(seen).collect();
                request.statement(replace).set_parameters(Some(parameters))
            }
            Kind::Remove => {
                let parameters = [bucket, key].into_iter().chain(seen).collect();
                request.statement(&self.remove).set_parameters(Some(parameters))
            }
            Kind::Update => {
                // The rest of the history stays, and names the jobs before.
                let parameters = [version.clone(), fields].into_iter().chain(expires);
                let parameters = parameters.chain([AttributeValue::Null(true), bucket, key, version]).collect();
                let request = request.statement(update).set_parameters(Some(parameters));
                request.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
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
    /// Its [`EXPIRES_AT`], if it has one.
    expires: Option<AttributeValue>,
    /// [`HISTORY`] and [`BEFORE`] of a record that takes the place of what was seen; null if it has none.
    history: Option<[AttributeValue; 2]>,
    /// The revision that it replaces.
    seen: Option<AttributeValue>,
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
        let fields = AttributeValue::M(fields);
        let (bucket, version) = (bucket_of(dataset, &upsert.key), upsert.version.to_string());
        // A second too late rather than too early.
        let expires = dataset.expires_at_ms(upsert.version.by).map(|ms| number(ms / 1000 + 1));
        let bytes = bucket.len() + upsert.key.len() + version.len() + field_bytes + "bucketkeyversionfields".len();
        let bytes = bytes + if expires.is_some() { EXPIRES_AT.len() + "1234567890".len() } else { 0 };
        let (bucket, key, version) = (text(bucket), text(&upsert.key), text(version));
        Self { bucket, key, version, fields, expires, history: None, seen: None, bytes }.that_fits()
    }

    /// The record that takes the place of what was seen, or its removal. If it does not fit with what was there before,
    /// that is not kept, unless readers see it.
    ///
    /// # Errors
    /// As for [`of`](Self::of).
    pub fn in_place(dataset: &Dataset, Replacement { key, record, seen }: &Replacement) -> Result<Self, PortError> {
        let Some(record) = record else {
            let (bucket, nothing) = (text(bucket_of(dataset, key)), AttributeValue::Null(true));
            let (version, fields, seen) = (nothing.clone(), nothing, seen.map(text));
            let (expires, history, bytes) = (None, None, key.len());
            return Ok(Self { bucket, key: text(key), version, fields, expires, history, seen, bytes });
        };
        let bare = Self::of(dataset, &record.latest)?;
        let with = |history: &Option<History>| {
            let mut json = serde_json::to_value(history).map_err(|error| PortError::invalid(DOING, error))?;
            let before = json.pointer_mut(BEFORE_RECORD).and_then(|before| before.as_object_mut()?.remove("fields"));
            let attribute = |json: &Value| value(json).map_err(|error| PortError::invalid(DOING, error));
            let (history, _) = attribute(&json)?;
            let (before, before_bytes) = attribute(&before.unwrap_or_default())?;
            let bytes = bare.bytes + HISTORY.len() + HISTORY_MAX_BYTES + BEFORE.len() + before_bytes;
            let (version, seen) = (text(record.at()), seen.map(text));
            Self { version, history: Some([history, before]), seen, bytes, ..bare.clone() }.that_fits()
        };
        let kept = with(&record.history);
        match &record.history {
            Some(history @ History { before: Before::Record { .. }, .. }) if kept.is_err() && !history.hides() => {
                with(&Some(History { before: Before::TooLarge, ..history.clone() }))
            }
            _ => kept,
        }
    }

    /// True if it takes the place of what was seen, and of nothing else.
    pub const fn is_in_place(&self) -> bool {
        self.history.is_some() || self.seen.is_some()
    }

    fn that_fits(self) -> Result<Self, PortError> {
        match self.bytes {
            0..=ITEM_MAX_BYTES => Ok(self),
            bytes => {
                let error = format!("the record takes {bytes} bytes, more than the {ITEM_MAX_BYTES} it may have");
                Err(PortError::invalid(DOING, error))
            }
        }
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
    /// An update found no record.
    Missing,
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
        Some(Code::ConditionalCheckFailed) => Answer::Missing,
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
        Value::Object(fields) => {
            let (fields, bytes) = map(fields)?;
            (AttributeValue::M(fields), bytes)
        }
    })
}

/// The attributes of these fields, and the size of a map of them.
pub(super) fn map(fields: &Map<String, Value>) -> Result<(Item, usize), BoxError> {
    let mut bytes = 3;
    let mut map = HashMap::with_capacity(fields.len());
    for (name, field) in fields {
        let (field, size) = value(field)?;
        bytes += name.len() + size + 1;
        map.insert(name.clone(), field);
    }
    Ok((map, bytes))
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
        Dataset::lasting(name, partitions)
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

    fn in_place(record: rowmill_core::model::stored_record::StoredRecord) -> Replacement {
        Replacement { key: "k".into(), record: Some(record), seen: None }
    }

    #[test]
    fn what_was_there_before_is_kept_if_both_fit() {
        use rowmill_core::model::ids::JobGuid;
        use rowmill_core::model::records::{RecordVersion, Writer};
        use rowmill_core::model::stored_record::{StoredRecord, Undoing};
        let row = |job: u8, bytes: usize| {
            let by = Writer { job_created_ms: job.into(), job_guid: JobGuid(uuid::Uuid::from_u128(job.into())) };
            let fields = json!({ "text": "x".repeat(bytes) }).as_object().cloned().unwrap();
            DatasetRecord { key: "k".into(), version: RecordVersion { by, row: 1 }, fields }
        };
        let kept = |before, after| {
            let record = StoredRecord::first(row(1, before)).with(&row(2, after)).unwrap();
            let record = Record::in_place(&dataset("d", 1), &in_place(record))?;
            assert!(record.bytes <= ITEM_MAX_BYTES);
            Ok::<_, PortError>(record.history.unwrap()[1] != AttributeValue::Null(true))
        };
        assert!(matches!(kept(200 * 1024, 198 * 1024), Ok(true)));
        assert!(matches!(kept(200 * 1024, 200 * 1024), Ok(false)), "not what was there before");
        assert!(matches!(kept(390 * 1024, 390 * 1024), Ok(false)));
        assert!(kept(1, 400 * 1024).is_err());

        // The largest record that keeps what was there before can be undone, whatever its history names.
        let mut record = StoredRecord::first(row(1, 200 * 1024));
        for job in 2..=20 {
            record = record.with(&row(job, 200 * 1024)).unwrap();
        }
        let mut spare = 0;
        let fitting = |spare: usize| {
            let record = record.with(&row(21, 199 * 1024 - spare)).unwrap();
            Record::in_place(&dataset("d", 1), &in_place(record.clone())).map(|of| (record, of))
        };
        let (record, bytes) = loop {
            let (record, row) = fitting(spare).unwrap();
            if row.history.unwrap()[1] != AttributeValue::Null(true) {
                break (record, row.bytes);
            }
            spare += 1;
        };
        let guid = |job: u128| JobGuid(uuid::Uuid::from_u128(job));
        let Undoing::Reverse(undone) = record.undo(guid(21), guid(22)) else { panic!("kept") };
        let Undoing::Reverse(shown) = undone.undo(guid(22), guid(23)) else { panic!("kept") };
        for record in [*undone.clone(), *shown] {
            let row = Record::in_place(&dataset("d", 1), &in_place(record)).unwrap();
            assert!(row.bytes == bytes && row.history.unwrap()[1] != AttributeValue::Null(true));
        }
        // What readers see is not dropped for a late row that does not fit.
        let late = DatasetRecord { version: RecordVersion { row: 2, ..row(20, 0).version }, ..row(20, 250 * 1024) };
        let record = undone.with(&late).unwrap();
        assert!(Record::in_place(&dataset("d", 1), &in_place(record)).is_err());
    }

    #[test]
    fn every_error_code_of_dynamodb_is_mapped() {
        let of = |code| answer(Some(&BatchStatementError::builder().code(code).build()));
        assert_eq!(answer(None), Answer::Done);
        assert_eq!(of(Code::DuplicateItem), Answer::Exists);
        assert_eq!(of(Code::ConditionalCheckFailed), Answer::Missing);
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
