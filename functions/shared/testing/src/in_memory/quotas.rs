use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;

use super::lock;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::ids::{FileGuid, Owner, RunId};
use rowmill_core::model::outstanding::{OutstandingLimits, OutstandingUpload};
use rowmill_core::model::request_limits::{RequestLimits, RequestsCounted, Window};
use rowmill_core::ports::{
    Block, Blocks, Counted, OutstandingError, OutstandingUploads, PortError, RequestCounts, RequestToCount,
};

/// The rows of the admission table that bound what a caller may ask for, in memory.
#[derive(Debug, Default)]
pub struct InMemoryQuotas(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    requests: HashMap<(Principal, String), Vec<(RunId, Timestamp)>>,
    blocks: HashMap<Principal, Block>,
    open: HashMap<Owner, Vec<OutstandingUpload>>,
}

impl InMemoryQuotas {
    /// Blocks a principal, or lifts its block.
    pub fn set_block(&self, principal: Principal, block: Option<Block>) {
        let mut rows = lock(&self.0);
        match block {
            Some(block) => rows.blocks.insert(principal, block),
            None => rows.blocks.remove(&principal),
        };
    }

    /// Number of requests that were counted.
    pub fn counted(&self) -> usize {
        lock(&self.0).requests.values().map(Vec::len).sum()
    }

    /// The outstanding uploads of an owner, also those that no longer count.
    pub fn outstanding(&self, owner: &Owner) -> Vec<OutstandingUpload> {
        lock(&self.0).open.get(owner).cloned().unwrap_or_default()
    }
}

#[async_trait]
impl RequestCounts for InMemoryQuotas {
    async fn count(&self, request: &RequestToCount, limits: RequestLimits) -> Result<Counted, PortError> {
        let mut rows = lock(&self.0);
        let row = rows.requests.entry((request.principal.clone(), request.operation.clone())).or_default();
        let within = |row: &[(RunId, Timestamp)], window: Window| {
            let same = row.iter().filter(|(_, at)| window.number(*at) == window.number(request.at));
            u32::try_from(same.count()).unwrap_or(u32::MAX)
        };
        let counted =
            |row: &[_]| RequestsCounted { minute: within(row, Window::Minute), hour: within(row, Window::Hour) };
        if row.iter().any(|(id, _)| *id == request.id) {
            return Ok(Counted::Yes(counted(row)));
        }
        let before = counted(row);
        if limits.reached(before).is_some() {
            return Ok(Counted::No(before));
        }
        row.push((request.id, request.at));
        Ok(Counted::Yes(counted(row)))
    }
}

#[async_trait]
impl Blocks for InMemoryQuotas {
    async fn block(&self, principal: &Principal) -> Result<Option<Block>, PortError> {
        Ok(lock(&self.0).blocks.get(principal).cloned())
    }
}

#[async_trait]
impl OutstandingUploads for InMemoryQuotas {
    async fn add(
        &self,
        owner: &Owner,
        upload: &OutstandingUpload,
        limits: OutstandingLimits,
        now: Timestamp,
    ) -> Result<(), OutstandingError> {
        let mut rows = lock(&self.0);
        let open = rows.open.entry(owner.clone()).or_default();
        if open.iter().any(|there| there.file_guid == upload.file_guid) {
            return Ok(());
        }
        open.retain(|there| there.until > now);
        let uploads = u32::try_from(open.len()).unwrap_or(u32::MAX);
        if !limits.fits(uploads, open.iter().map(|there| there.bytes).sum(), upload.bytes) {
            return Err(OutstandingError::Full(limits.refusal(open, upload.bytes, now)));
        }
        open.push(*upload);
        Ok(())
    }

    async fn remove(&self, owner: &Owner, file_guid: FileGuid) -> Result<(), PortError> {
        if let Some(open) = lock(&self.0).open.get_mut(owner) {
            open.retain(|there| there.file_guid != file_guid);
        }
        Ok(())
    }
}
