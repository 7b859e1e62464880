use std::sync::Arc;

use rowmill_core::model::spec::Spec;
use rowmill_core::ports::processor::{ItemProcessor, JobType, ParamsError};

/// A job type of this name without params of its own: each of its jobs has this processor.
pub fn plain_type(name: &'static str, processor: impl ItemProcessor + Clone + 'static) -> Arc<dyn JobType> {
    Arc::new(PlainType(name, processor))
}

struct PlainType<P>(&'static str, P);

impl<P: ItemProcessor + Clone + 'static> JobType for PlainType<P> {
    fn name(&self) -> &str {
        self.0
    }

    fn prepare(&self, _: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        Ok(Arc::new(self.1.clone()))
    }
}
