use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::PortError;

use super::tally_row::details_expiry;
use crate::adapters::dynamodb::attributes::{Item, number, text};
use crate::adapters::dynamodb::write::Update;

/// The sort key of the spec row.
pub const SPEC_ROW: &str = "spec";

/// The attribute that holds the spec as JSON.
const SPEC: &str = "spec";

/// The attribute of a spec whose file is awaited.
const AWAITED: &str = "awaited";

/// Puts this spec in the place of one whose file is awaited. `:spec` is [`spec_text`].
pub const PUT_FOUND: Update<'_> = Update {
    doing: "storing the spec of a file that was found",
    change: "SET #spec = :spec REMOVE #awaited",
    condition: "attribute_exists(#awaited)",
};

/// The value of the attribute that holds the spec.
///
/// # Errors
/// None in practice: a spec can be written as JSON.
pub fn spec_text(doing: &'static str, spec: &Spec) -> Result<AttributeValue, PortError> {
    serde_json::to_string(spec).map(text).map_err(|error| PortError::invalid(doing, error))
}

/// Puts the spec row, as an item of a transaction.
///
/// # Errors
/// None in practice: a spec can be written as JSON.
pub fn put_spec(doing: &'static str, jobs_table: &str, spec: &Spec) -> Result<TransactWriteItem, PortError> {
    let mut put = Put::builder()
        .table_name(jobs_table)
        .item("jobId", text(spec.job_guid))
        .item("row", text(SPEC_ROW))
        .item(SPEC, spec_text(doing, spec)?)
        .item("expiresAt", number(details_expiry(spec.job_guid)));
    if spec.source.is_awaited() {
        put = put.item(AWAITED, AttributeValue::Bool(true));
    }
    Ok(TransactWriteItem::builder().put(put.build().map_err(|error| PortError::invalid(doing, error))?).build())
}

/// The spec in a row.
pub fn spec_of(doing: &'static str, item: &Item) -> Result<Spec, PortError> {
    let spec = item.get(SPEC).and_then(|spec| spec.as_s().ok());
    let spec = spec.ok_or_else(|| PortError::invalid(doing, "the row has no spec"))?;
    serde_json::from_str(spec).map_err(|error| PortError::invalid(doing, error))
}
