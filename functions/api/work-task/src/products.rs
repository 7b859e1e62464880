//! Products: files of items, which workers store with presigned requests, and which outputs name.
//!
//! The key has the token of the lease, and an output that names a product counts only if the report of this lease does.
//! So what the results name is what the run that counted has stored, and nobody can replace it.

use std::collections::BTreeMap;

use rowmill_api::request::CONTENT_TYPE_MAX_BYTES;
use rowmill_api::task::{OutputOfItem, ProductLine, ProductRequest};
use rowmill_api::upload::RequestView;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::product::{OCTET_STREAM, PRODUCT_MAX_BYTES, PRODUCTS_FIELD, PRODUCTS_MAX, ProductId};
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{PortError, expiry, found};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::TaskError;
use crate::hold::Held;
use crate::lend::TaskWork;

impl TaskWork {
    /// Presigns the request that stores a product of an item of this lease.
    ///
    /// # Errors
    /// `Gone`; `NotBegun`; `BadProduct`; `Port`.
    pub async fn product(&self, id: TaskId, token: RunId, wanted: &ProductRequest) -> Result<RequestView, TaskError> {
        let Held { job, checkpoint } = self.held(id, token).await?;
        let note = checkpoint.held_by(token).ok_or(TaskError::Gone(id))?;
        if note.unconfirmed {
            return Err(TaskError::NotBegun(id));
        }
        let content_type = wanted.content_type.as_deref().unwrap_or(OCTET_STREAM);
        let is_type = (1..=CONTENT_TYPE_MAX_BYTES).contains(&content_type.len())
            && content_type.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !is_type {
            return Err(bad("contentType", format!("must be 1 to {CONTENT_TYPE_MAX_BYTES} visible ASCII characters")));
        }
        if wanted.bytes > PRODUCT_MAX_BYTES {
            return Err(bad("bytes", format!("must be at most {PRODUCT_MAX_BYTES}")));
        }
        let message = self.row(&job, id).await?.message;
        let spec = self.jobs.spec(id.job).await?;
        if spec.output.is_none() {
            return Err(bad("name", "needs an output that names it, and the job type has no `outputs`".to_owned()));
        }
        let items = self.items(&spec, &message).await?;
        let left = items.iter().skip(checkpoint.done as usize).take(note.items as usize);
        let mut rows = left.filter(|item| item.record.is_ok()).map(|item| item.row);
        let is_it = |row: &u64| Item::identifier(id.job, *row) == wanted.item_identifier;
        let Some(row) = rows.find(is_it) else {
            return Err(bad("itemIdentifier", "names no item that is left of this lease".to_owned()));
        };
        let product =
            ProductId::new(row, token, &wanted.name).map_err(|error| bad("name", format!("is wrong: {error}")))?;
        let key = product.key(id.job);
        let request = self.transfers.presign_put(&key, content_type, wanted.bytes, None, self.link_expiry).await?;
        Ok(RequestView::of(request, expiry(self.clock.now(), self.link_expiry)))
    }

    /// Writes the products that these outputs name into them, as they are stored.
    ///
    /// # Errors
    /// `Gone`; `BadProduct` if one is not stored; `Port`.
    pub async fn list_products(&self, id: TaskId, token: RunId, outputs: &mut [OutputOfItem]) -> Result<(), TaskError> {
        let with_products = outputs.iter_mut().filter(|output| !output.products.is_empty());
        for (number, output) in with_products.enumerate() {
            if number == 0 {
                self.held(id, token).await?;
            }
            let names = std::mem::take(&mut output.products);
            if names.len() > PRODUCTS_MAX {
                return Err(bad("outputs", format!("may name {PRODUCTS_MAX} products of an item at most")));
            }
            let mut products = Vec::with_capacity(names.len());
            for name in names {
                products.push(self.stored(id, token, &output.item_identifier, &name).await?);
            }
            // The values of the other fields stay as they are written.
            let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(output.output.get()) else {
                return Err(bad("outputs", "must have an `output` that is an object".to_owned()));
            };
            let invalid = |error| PortError::invalid("listing products", error);
            let products = to_raw_value(&products).map_err(invalid)?;
            if fields.insert(PRODUCTS_FIELD.to_owned(), products).is_some() {
                let message = "names products of an item whose `output` has a field `products` of its own";
                return Err(bad("outputs", message.to_owned()));
            }
            output.output = to_raw_value(&fields).map_err(invalid)?;
        }
        Ok(())
    }

    async fn stored(&self, id: TaskId, token: RunId, item: &str, name: &str) -> Result<ProductLine, TaskError> {
        let row = item.strip_prefix(&format!("{}/", id.job)).and_then(|row| row.parse().ok());
        let product = row.and_then(|row| ProductId::new(row, token, name).ok());
        let missing = || bad("outputs", format!("names a product that is not stored: `{name}` of `{item}`"));
        let product = product.ok_or_else(missing)?;
        let stored = found(self.objects.head(&product.key(id.job)).await)?.ok_or_else(missing)?;
        Ok(ProductLine {
            name: name.to_owned(),
            content_type: stored.content_type,
            bytes: stored.size,
            etag: stored.etag,
            path: format!("/api/jobs/{}/products/{product}", id.job),
        })
    }
}

fn bad(field: &'static str, message: String) -> TaskError {
    TaskError::BadProduct { field, message }
}
