use std::sync::Arc;

use rowmill_core::ports::{Clock, JobStore, MultipartObjects, Objects};
use rowmill_formats::Limits;

pub struct Composer {
    pub jobs: Arc<dyn JobStore>,
    /// The upload, the objects that the job left, and the results.
    pub objects: Arc<dyn Objects>,
    /// Stores results that are longer than a part.
    pub multipart: Arc<dyn MultipartObjects>,
    pub clock: Arc<dyn Clock>,
    /// The most bytes of undispatched input that are copied.
    pub unprocessed_max_bytes: u64,
    /// The length of a part of a result, see [`PART_BYTES`](super::writer::PART_BYTES).
    pub part_bytes: usize,
    /// The limits of a packed upload; the same as the splitter's.
    pub packed: Limits,
}
