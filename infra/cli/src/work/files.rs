//! Stores the files that lines of a command name, as products of its items.
//!
//! A line with `files` waits here until they are stored: so what it reports is there. The beats go on meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowmill_api::task::{ProductRequest, TaskView};
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use super::outcomes::BadLine;
use crate::api::ApiClient;
use crate::progress::ByteProgress;
use crate::upload::{SourceFile, Transfer, UploadError};

/// Field of a line with paths of files.
const FILES: &str = "files";

/// Field in its place once they are stored, with their names.
const PRODUCTS: &str = "products";

const ITEM: &str = "itemIdentifier";

type Fields = BTreeMap<String, Box<RawValue>>;

/// Stores files for the command of a task.
#[derive(Clone)]
pub struct Files {
    api: watch::Receiver<Arc<ApiClient>>,
    task_id: String,
    token: String,
    is_storing: Arc<AtomicBool>,
}

impl Files {
    pub fn of(task: &TaskView, api: watch::Receiver<Arc<ApiClient>>) -> Self {
        let (task_id, token) = (task.task_id.clone(), task.token.clone());
        Self { api, task_id, token, is_storing: Arc::default() }
    }

    /// True while files are being stored: a line follows.
    pub fn is_storing(&self) -> bool {
        self.is_storing.load(Ordering::Acquire)
    }

    /// The line as it is reported: with the names of its files, which are stored then.
    ///
    /// # Errors
    /// One of them cannot be stored, or the line is no outcome of an item.
    pub async fn stored(&self, line: String) -> Result<String, BadLine> {
        // What is no object is refused with all other outcomes.
        let Ok(mut fields) = serde_json::from_str::<Fields>(&line) else { return Ok(line) };
        let Some(files) = fields.remove(FILES) else { return Ok(line) };
        self.is_storing.store(true, Ordering::Release);
        let stored = self.store_all(&files, &mut fields).await;
        self.is_storing.store(false, Ordering::Release);
        stored?;
        serde_json::to_string(&fields).map_err(|error| BadLine::File(error.to_string()))
    }

    async fn store_all(&self, files: &RawValue, fields: &mut Fields) -> Result<(), BadLine> {
        let paths: Vec<PathBuf> = serde_json::from_str(files.get()).map_err(|_| BadLine::NoFiles)?;
        let item = fields.get(ITEM).and_then(|item| serde_json::from_str::<String>(item.get()).ok());
        let item = item.ok_or(BadLine::NoFiles)?;
        let mut names = Vec::with_capacity(paths.len());
        for path in paths {
            let name = self.store(&item, &path).await.map_err(|error| BadLine::File(error.to_string()))?;
            names.push(name);
        }
        let names = to_raw_value(&names).map_err(|error| BadLine::File(error.to_string()))?;
        fields.insert(PRODUCTS.to_owned(), names);
        Ok(())
    }

    async fn store(&self, item: &str, path: &Path) -> Result<String, UploadError> {
        let file = SourceFile::open(path, None).await?;
        let product = ProductRequest {
            token: self.token.clone(),
            item_identifier: item.to_owned(),
            name: file.name.clone(),
            content_type: Some(file.content_type.to_owned()),
            bytes: file.size,
        };
        let api = Arc::clone(&self.api.borrow());
        let request = api.store_product(&self.task_id, &product).await?;
        let transfer = Transfer::to(&request.url, api.retry().clone())?;
        transfer.put(&file, &request, 0..file.size, &ByteProgress::new(|_| {})).await?;
        Ok(file.name)
    }
}
